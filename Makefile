# The index of commands. `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo demo-down test test-unit cluster-up cluster-down image crds fmt lint clean

help: ## This list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## A throwaway cluster with failing Pods, the controller, and its diagnoses on screen
	@tests/demo/run

demo-down: ## Removes all that the demo made
	@tests/demo/down

test: ## All tests: unit, on a real control plane, on a real node (installs what is missing)
	@tests/run

test-unit: ## The tests that need no cluster
	@tests/run --unit

cluster-up: ## The throwaway cluster with a node; prints how to use it
	@tests/cluster/up --node

cluster-down: ## Ends the throwaway cluster
	@tests/cluster/down

image: ## The container image as an archive: dist/initwatch.tar (IMAGE=name:tag)
	@deploy/image

crds: ## Writes crds/*.yaml from the types in src/api
	@UPDATE_CRDS=1 cargo test --quiet --test crds

fmt: ## Formats the Rust code
	@cargo fmt

lint: ## Formatting, clippy, shellcheck, licences and sources of dependencies
	@tests/lint

clean: ## Ends the cluster and removes build results; what the cluster is built from stays in the cache
	@tests/cluster/down
	@rm -rf dist
	@cargo clean
