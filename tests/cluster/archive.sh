# Makes an image archive from a folder, with nothing but tar and sha256sum; sourced, not run.
# shellcheck shell=bash

# image_archive OUT NAME ROOT_FOLDER CONFIG: CONFIG is the "config" object of the image as JSON.
# The archive is an OCI layout with a Docker manifest beside it, as `docker save` writes it: containerd, Docker,
# Podman and skopeo all read it. The same content gives the same bytes: order, times and owners are fixed.
image_archive() {
  local out=$1 name=$2 root=$3 config=$4 work layer image manifest architecture
  local fixed=(--sort=name --mtime=@0 --numeric-owner --owner=0 --group=0)
  work=$(mktemp -d)
  mkdir -p "$work/blobs/sha256"
  case $(uname -m) in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture=$(uname -m) ;;
  esac
  tar "${fixed[@]}" -C "$root" -cf "$work/blob" .
  layer=$(blob "$work")
  printf '{"architecture":"%s","os":"linux","config":%s,"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$architecture" "$config" "${layer%% *}" >"$work/blob"
  image=$(blob "$work")
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}' \
    "$(descriptor application/vnd.oci.image.config.v1+json "$image")" \
    "$(descriptor application/vnd.oci.image.layer.v1.tar "$layer")" >"$work/blob"
  manifest=$(blob "$work")
  manifest=$(descriptor application/vnd.oci.image.manifest.v1+json "$manifest")
  printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
    "${manifest%\}}" "$name" "${name##*:}" >"$work/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$work/oci-layout"
  printf '[{"Config":"blobs/sha256/%s","RepoTags":["%s"],"Layers":["blobs/sha256/%s"]}]' \
    "${image%% *}" "$name" "${layer%% *}" >"$work/manifest.json"
  mkdir -p "$(dirname "$out")"
  # Readers look for "manifest.json", not "./manifest.json".
  tar "${fixed[@]}" -C "$work" -cf "$out.partial" oci-layout index.json manifest.json blobs
  mv "$out.partial" "$out"
  rm -rf "$work"
}

# blob FOLDER: moves FOLDER/blob to the name that its content gives it; prints "DIGEST SIZE".
blob() {
  local digest
  digest=$(sha256sum "$1/blob")
  digest=${digest%% *}
  printf '%s %s\n' "$digest" "$(stat -c %s "$1/blob")"
  mv "$1/blob" "$1/blobs/sha256/$digest"
}

# descriptor MEDIA_TYPE "DIGEST SIZE"
descriptor() { printf '{"mediaType":"%s","digest":"sha256:%s","size":%s}' "$1" "${2% *}" "${2#* }"; }
