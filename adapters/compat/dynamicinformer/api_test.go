package dynamicinformer_test

import (
	"maps"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"

	ours "github.com/crdcache/crdcache/adapters/compat/dynamicinformer"
)

// The interfaces are the same, so a program can change its imports one by one.
var _ *clientgo.DynamicSharedInformerFactory = (*ours.DynamicSharedInformerFactory)(nil)

// addedDeclarations are those that client-go lacks, or has since 0.38.
var addedDeclarations = []string{
	"func Packed(client dynamic.Interface) dynamic.Interface",
	"func NewDynamicSharedInformerFactoryWithOptions(client dynamic.Interface, defaultResync time.Duration, " +
		"options ...DynamicSharedInformerOption) DynamicSharedInformerFactory",
	"type DynamicSharedInformerOption func(*factory) *factory",
	"func WithShardSelector(shardSelector sharding.Selector) DynamicSharedInformerOption",
}

// TestSameAPI compares every exported declaration, to detect a client-go release that adds or changes one.
func TestSameAPI(t *testing.T) {
	want := declarations(t, "k8s.io/client-go/dynamic/dynamicinformer")
	if len(want) < 5 {
		t.Fatalf("client-go's package declares %v: the test does not find all declarations", want)
	}
	got := declarations(t, ".")
	for _, added := range addedDeclarations {
		if !got[added] {
			t.Errorf("the declarations %v do not contain %s", got, added)
		}
		if !want[added] {
			delete(got, added)
		}
	}
	delete(got, "type DynamicSharedInformerFactory = clientgo.DynamicSharedInformerFactory")
	maps.DeleteFunc(want, func(declared string, _ bool) bool {
		return strings.HasPrefix(declared, "type DynamicSharedInformerFactory interface")
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exported declarations (-client-go +ours):\n%s", diff)
	}
}

var (
	heading     = regexp.MustCompile(`(?m)^(CONSTANTS|VARIABLES|FUNCTIONS|TYPES)$`)
	comment     = regexp.MustCompile(`(?m)^(    |\s*//).*$`)
	declaration = regexp.MustCompile(`(?m)^(const|var|func|type) [^\n]*(\n\t[^\n]*|\n[})]|\n$)*`)
)

// declarations returns the exported declarations of a package in one line each.
func declarations(t *testing.T, path string) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "doc", "-all", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	start := heading.FindIndex(out)
	if start == nil {
		t.Fatalf("no declarations in %s", out)
	}
	all := map[string]bool{}
	for _, d := range declaration.FindAll(comment.ReplaceAll(out[start[0]:], nil), -1) {
		name := strings.ReplaceAll(string(d), "dynamicSharedInformerFactory", "factory") // in both
		all[strings.Join(strings.Fields(name), " ")] = true
	}
	return all
}
