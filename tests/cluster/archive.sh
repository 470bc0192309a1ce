# Makes an image archive from a folder, with nothing but tar and sha256sum; sourced, not run.
# shellcheck shell=bash

# image_archive OUT NAME ROOT_FOLDER CONFIG: CONFIG is the "config" object of the image as JSON.
# The same content gives the same bytes: order, times and owners are fixed.
image_archive() {
  local out=$1 name=$2 root=$3 config=$4 work layer image architecture
  work=$(mktemp -d)
  case $(uname -m) in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture=$(uname -m) ;;
  esac
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -cf "$work/layer.tar" .
  layer=$(sha256sum "$work/layer.tar" | cut -d' ' -f1)
  mv "$work/layer.tar" "$work/$layer.tar"
  printf '{"architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$architecture" "$config" "$layer" >"$work/config.json"
  image=$(sha256sum "$work/config.json" | cut -d' ' -f1)
  mv "$work/config.json" "$work/$image.json"
  printf '[{"Config":"%s.json","RepoTags":["%s"],"Layers":["%s.tar"]}]' "$image" "$name" "$layer" >"$work/manifest.json"
  mkdir -p "$(dirname "$out")"
  # Readers look for "manifest.json", not "./manifest.json".
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work" -cf "$out.partial" \
    manifest.json "$image.json" "$layer.tar"
  mv "$out.partial" "$out"
  rm -rf "$work"
}
