// Package crdcached_test asks a crdcached and the API server behind it the same, as the same users, and compares the answers.
package crdcached_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/crdcached/running"
)

func TestMain(m *testing.M) { running.Main(m) }
