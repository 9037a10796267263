package running

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/integration/harness"
)

// Main runs the tests of a package and exits, like harness.Main.
func Main(m *testing.M, prepare ...func(folder string) error) { harness.Main(m, prepare...) }

// splitResource splits a resource of a rule, such as "widgets/status".
func splitResource(text string) (resource, subresource string) {
	resource, subresource, _ = strings.Cut(text, "/")
	return resource, subresource
}
