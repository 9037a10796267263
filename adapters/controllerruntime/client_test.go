package controllerruntime

import (
	"testing"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestShardedInformersAcceptHandlers verifies that sharded informers reject no handler except the one of
// controller-runtime's own consistent client.
func TestShardedInformersAcceptHandlers(t *testing.T) {
	if err := (&resource{sharded: true}).checkHandler(&apitest.Server{}); err != nil {
		t.Error(err)
	}
	if err := (&resource{sharded: true}).checkHandler(structHandler{}); err != nil {
		t.Error(err)
	}
}

type structHandler struct{}
