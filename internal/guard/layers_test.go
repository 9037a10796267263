package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// layer lists the folders that may directly import an expensive package. Tests may import anything.
type layer struct {
	path   string   // the package, with everything below it
	only   []string // the folders that can import it, with everything below them
	reason string
}

// enginePackages are the folders that depend on how objects are stored.
var enginePackages = []string{"dynamicinformer", "internal/informer", "internal/store", "internal/packed",
	"internal/codec", "internal/requests", "internal/persist"}

// listReader prints and saves lists as the server sends them, so it reads them with the engine's decoder.
const listReader = "cmd/crdcache/internal"

var layers = []layer{
	{"github.com/spf13/cobra", []string{"cmd"}, "commands live in the command line"},
	{"github.com/spf13/pflag", []string{"cmd"}, "flags live in the command line"},
	{"k8s.io/cli-runtime", []string{"cmd"}, "printers and kubeconfig flags live in the command line"},
	{"k8s.io/client-go/informers", []string{"adapters/compat"},
		"only the drop-in for client-go's dynamicinformer has its types in signatures"},
	{"k8s.io/client-go/discovery", []string{"adapters/compat", "cmd"},
		"it brings every API group; our discovery package reads the same documents without"},
	{"k8s.io/client-go/kubernetes", []string{"cmd", "adapters/shard"},
		"typed clients have no place in a dynamic library; leader election is built on that of Leases"},
	{"k8s.io/client-go/tools/leaderelection", []string{"adapters/shard"}, "it brings every API group"},
	{modulePath + "/internal/store", enginePackages,
		"dynamicinformer.Snapshot is the public form of a cache's content"},
	{modulePath + "/internal/packed", append([]string{"adapters/storage/s2", "discovery", listReader}, enginePackages...),
		"dynamicinformer.PackedObject is the public form of an object"},
	{modulePath + "/internal/codec", append([]string{listReader}, enginePackages...), "the wire format is the engine's business"},
	{modulePath + "/cmd", []string{"cmd"}, "nothing depends on the command line"},
}

// forbiddenImports lists direct imports that a layer forbids.
func forbiddenImports(layers []layer, packages []dependency) []string {
	var violations []string
	for _, p := range packages {
		folder := strings.TrimPrefix(p.path, modulePath+"/")
		for _, imported := range p.imports {
			for _, l := range layers {
				allowed := slices.ContainsFunc(l.only, func(dir string) bool { return isWithin(folder, dir) })
				if isWithin(imported, l.path) && !allowed {
					violations = append(violations, fmt.Sprintf("%s imports %s: %s; only %v may", folder,
						imported, l.reason, l.only))
				}
			}
		}
	}
	return violations
}

// directImports lists the packages of the library and of the command with what they import.
func directImports(t *testing.T) []dependency {
	t.Helper()
	var packages []dependency
	for _, module := range []string{".", commandModule} {
		out := goCommand(t, module, "list", "-e", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 0 {
				packages = append(packages, dependency{fields[0], fields[1:]})
			}
		}
	}
	return packages
}

func TestLayers(t *testing.T) {
	packages := directImports(t)
	if len(packages) < 3 {
		t.Fatalf("the go command lists only %d packages of ours", len(packages))
	}
	reportViolations(t, forbiddenImports(layers, packages))
}
