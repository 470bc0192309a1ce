# The image of initwatch: the binary alone, as a user without rights.
#   docker build -t registry.example.com/initwatch:0.1.0 .
FROM rust:1-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY config config
# Statically linked against glibc (libc6-dev brings libc.a): the final stage needs nothing else. An explicit
# target keeps the flag away from build scripts.
RUN target=$(rustc -vV | sed -n 's/^host: //p') \
 && RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --bin initwatch --target "$target" \
 && cp "target/$target/release/initwatch" /initwatch

FROM scratch
LABEL org.opencontainers.image.title=initwatch org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /initwatch /initwatch
USER 65532:65532
ENTRYPOINT ["/initwatch"]
CMD ["controller"]
