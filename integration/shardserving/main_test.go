// Package shardserving_test runs replicas of crdcached that share the objects of a cluster, and asks them and the API server the
// same.
package shardserving_test

import (
	"testing"

	"github.com/crdcache/crdcache/integration/crdcached/running"
)

func TestMain(m *testing.M) { running.Main(m) }
