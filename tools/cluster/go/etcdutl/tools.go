//go:build tools

// Package tools names what the cluster harness builds, so that go.mod keeps it.
package tools

import (
	_ "go.etcd.io/etcd/etcdutl/v3"
)
