package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// floor is a floor of the house. Its packages import those of their own floor and of lower floors.
type floor struct {
	name     string
	packages []string // with everything below them; the longest match counts
	// withoutEngine means that they import neither the engine nor the floor that is built on it.
	withoutEngine bool
}

// floors are in order, the lowest first.
var floors = []floor{
	{"text", []string{"internal/naming", "internal/jsontext", "internal/jsonpath", "internal/manifest",
		"internal/expression", "internal/queue"}, false},
	{"values", []string{"dynamicinformer/persistence", "dynamicinformer/sharding", "dynamicinformer/status",
		"dynamicinformer/typesource", "discovery/crd", "internal/display"}, false},
	{"engine", []string{"internal"}, false},
	{"discovery, dynamicinformer", []string{"discovery", "dynamicinformer"}, false},
	{"indexers", []string{"indexers"}, true},
	{"query, references", []string{"indexers/query", "indexers/references"}, true},
	{"bind", []string{"indexers/bind", "indexers/reload"}, false},
	{"adapters, serving", []string{"adapters", "serving"}, false},
	{"test", append(rings["test"], "testdata", "internal/apiserver"), false},
	{"command", []string{"cmd"}, false},
}

// floorOf returns the number of the floor of a package, or -1.
func floorOf(folder string) (number int) {
	number, longest := -1, ""
	for i, f := range floors {
		for _, p := range f.packages {
			if isWithin(folder, p) && len(p) > len(longest) {
				number, longest = i, p
			}
		}
	}
	return number
}

// commandPackageOrder lists the packages of the command: a package imports only earlier ones.
var commandPackageOrder = []string{
	"cmd/crdcache/internal/startup", "cmd/crdcache/internal/localserver", "cmd/crdcache/internal/filesource",
	"cmd/crdcache/internal/columns",
	"cmd/crdcache/internal/print", "cmd/crdcache/internal/session", "cmd/crdcache/internal/follow",
	"cmd/crdcache/internal/imports", "cmd/crdcache/internal/snapshots", "cmd/crdcache/internal/query",
	"cmd/crdcache/internal/serve", "cmd/crdcache/internal/mcp",
	"cmd/crdcache/internal/cli", "cmd/crdcache",
}

// wrongDirectionImports lists two kinds of imports: those of a higher floor, and of a later package by an
// earlier one of commandPackageOrder.
func wrongDirectionImports(packages []dependency) []string {
	const engine, aboveEngine = 2, 3
	var violations []string
	for _, p := range packages {
		folder := strings.TrimPrefix(p.path, modulePath+"/")
		for _, imported := range p.imports {
			target, ours := strings.CutPrefix(imported, modulePath+"/")
			if !ours {
				continue
			}
			own, other := floorOf(folder), floorOf(target)
			isHigher := own < 0 || other < 0 || other > own
			if isHigher || floors[own].withoutEngine && (other == engine || other == aboveEngine) {
				violations = append(violations, fmt.Sprintf("%s imports %s: an import goes to a lower floor, and those "+
					"of indexers, query and references not to the engine; see floors", folder, target))
			}
			if !isWithin(folder, "cmd") || !isWithin(target, "cmd") {
				continue
			}
			from, to := slices.Index(commandPackageOrder, folder), slices.Index(commandPackageOrder, target)
			if from < 0 || to < 0 {
				violations = append(violations,
					fmt.Sprintf("%s imports %s: both need a place in the order of the command, which is %v",
						folder, target, commandPackageOrder))
			} else if to > from {
				violations = append(violations, fmt.Sprintf("%s imports %s: the order of the command is %v",
					folder, target, commandPackageOrder))
			}
		}
	}
	return violations
}

func TestDirection(t *testing.T) {
	reportViolations(t, wrongDirectionImports(directImports(t)))
}
