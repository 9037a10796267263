package running

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

// Main runs the tests of a package over the sandbox and exits. Call it from TestMain and from nowhere else.
func Main(m *testing.M) { harness.Main(m) }

// splitResource splits what a rule calls a resource: "widgets/status".
func splitResource(text string) (resource, subresource string) {
	resource, subresource, _ = strings.Cut(text, "/")
	return resource, subresource
}
