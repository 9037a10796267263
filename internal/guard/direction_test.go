package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// allowedUpward are the public packages that internal packages may import, because the public package
// defines the values of both.
var allowedUpward = []struct{ from, to, reason string }{
	{"internal/testkit", "", "shared test helpers run the whole library"},
	{"internal/apiserver", "", "it is a backend of readapi, and testcluster is its public form"},
	{"internal", "dynamicinformer/persistence", "plain values and interfaces without dependencies"},
	{"internal", "dynamicinformer/sharding", "plain values without dependencies"},
	{"internal", "dynamicinformer/status", "plain values; the internal packages fill them in"},
	{"internal", "dynamicinformer/typesource", "plain values and interfaces without dependencies"},
}

// commandPackageOrder lists the packages of the command: a package imports only earlier ones.
var commandPackageOrder = []string{
	"cmd/crdcache/internal/startup", "cmd/crdcache/internal/snapshot", "cmd/crdcache/internal/localserver", "cmd/crdcache/internal/filesource",
	"cmd/crdcache/internal/print", "cmd/crdcache/internal/session", "cmd/crdcache/internal/follow",
	"cmd/crdcache/internal/imports", "cmd/crdcache/internal/snapshots", "cmd/crdcache/internal/query",
	"cmd/crdcache/internal/serve",
	"cmd/crdcache/internal/cli", "cmd/crdcache",
}

// wrongDirectionImports lists two kinds of imports: of public packages by the engine below them, and of a
// later package by an earlier one of commandPackageOrder.
func wrongDirectionImports(packages []dependency) []string {
	var violations []string
	for _, p := range packages {
		folder := strings.TrimPrefix(p.path, modulePath+"/")
		for _, imported := range p.imports {
			target, ours := strings.CutPrefix(imported, modulePath+"/")
			if !ours {
				continue
			}
			if isWithin(folder, "internal") && !isWithin(target, "internal") && !isAllowedUpward(folder, target) {
				violations = append(violations,
					fmt.Sprintf("%s imports %s: public packages are built on internal; declare the needed interface there", folder, target))
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

// isAllowedUpward reports whether an import of a public package is allowed.
func isAllowedUpward(folder, imported string) bool {
	for _, a := range allowedUpward {
		if isWithin(folder, a.from) && (a.to == "" || isWithin(imported, a.to)) {
			return true
		}
	}
	return false
}

func TestDirection(t *testing.T) {
	reportViolations(t, wrongDirectionImports(directImports(t)))
}
