package running

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

// Main runs the tests of a package over the sandbox and exits, as harness.Main does.
func Main(m *testing.M, prepare ...func(folder string) error) { harness.Main(m, prepare...) }

// splitResource splits what a rule calls a resource: "widgets/status".
func splitResource(text string) (resource, subresource string) {
	resource, subresource, _ = strings.Cut(text, "/")
	return resource, subresource
}
