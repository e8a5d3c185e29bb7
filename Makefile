# SPDX-License-Identifier: Apache-2.0
# `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TOOLS := go tool -modfile=hack/tools/go.mod
export KUBEBUILDER_ASSETS := $(CURDIR)/bin/kubebuilder

# What bin/localkube and the linter are made of; both take minutes to build.
LOCALKUBE_SOURCES := $(shell find localkube -name '*.go' -not -name '*_test.go') localkube/go.mod localkube/go.sum
LINT_SOURCES := hack/lint/go.mod hack/lint/go.sum

# Packages whose tests are about concurrency run under the race detector.
RACY := ./internal/fairq ./internal/notify ./internal/store/... ./internal/telemetry ./internal/backend/... ./internal/agent/...

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: build
build: weir bin/localkube bin/kubebuilder ## Build bin/weir and bin/localkube

.PHONY: weir
weir:
	@hack/build.sh bin/weir . ./cmd/weir -ldflags "-X main.version=$(VERSION)"

bin/localkube: $(LOCALKUBE_SOURCES)
	@hack/build.sh bin/localkube localkube . -ldflags "-s -w"

bin/kubebuilder: bin/localkube
	@rm -rf $@ && bin/localkube links --dir $@ > /dev/null && touch $@

PREFIX ?= $(HOME)/.local
.PHONY: install
install: weir ## Install weir, also as "kubectl weir", into PREFIX (default ~/.local)
	@install -d $(DESTDIR)$(PREFIX)/bin
	@install -m 0755 bin/weir $(DESTDIR)$(PREFIX)/bin/weir
	@ln -sf weir $(DESTDIR)$(PREFIX)/bin/kubectl-weir
	@bin/weir completion kubectl > $(DESTDIR)$(PREFIX)/bin/kubectl_complete-weir
	@chmod 0755 $(DESTDIR)$(PREFIX)/bin/kubectl_complete-weir
	@echo "installed weir, kubectl-weir and kubectl_complete-weir in $(DESTDIR)$(PREFIX)/bin"

.PHONY: up
up: build ## Run the whole service on this machine; prints where to look
	@bin/weir up --detach

.PHONY: down
down: weir ## Stop it
	@bin/weir down

.PHONY: deps
deps: ## Install what tests need beyond Go, Node, git, make and a C compiler
	@hack/install-postgres.sh

.PHONY: test
test: build deps lint verify-generate ## Everything that a stranger needs to see pass
	@hack/section.sh "unit and database tests, with the race detector" go test -race -timeout 30m $(RACY)
	@hack/section.sh "all other packages" go test -p 1 -timeout 30m $$(hack/packages.sh $(RACY))
	@hack/section.sh "the control plane" go test -C localkube -timeout 30m ./...

.PHONY: test-fast
test-fast: ## No servers, under two minutes once built
	@go test -short ./...

bin/golangci-lint: $(LINT_SOURCES)
	@hack/build.sh bin/golangci-lint hack/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: bin/golangci-lint ## Style, import directions, mistakes
	@hack/section.sh "lint" bin/golangci-lint run ./...

.PHONY: generate
generate: ## Deep copies and CRDs from the API types
	@$(TOOLS) controller-gen object:headerFile=hack/tools/header.go.txt paths=./api/...
	@$(TOOLS) controller-gen crd paths=./api/... output:crd:dir=config/crd

.PHONY: verify-generate
verify-generate:
	@hack/verify-generate.sh

.PHONY: bench
bench: build deps ## Print the table of figures, write bench/results.json
	@go run ./bench

.PHONY: clean
clean: ## Remove what was built
	@rm -rf bin
