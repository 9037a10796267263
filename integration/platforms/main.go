// Command platforms type-checks the packages of the module in the working directory, including tests, for
// platforms given as GOOS/GOARCH. It finds compile errors without compiling, which would take many times
// longer because of the dependencies.
package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, platform := range os.Args[1:] {
		problems, err := check(platform)
		if err != nil {
			problems = []string{err.Error()}
		}
		for _, p := range problems {
			fmt.Fprintf(os.Stderr, "%s: %s\n", platform, p)
		}
		failed = failed || len(problems) > 0
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the type errors of the module's packages on a platform.
func check(platform string) ([]string, error) {
	system, architecture, found := strings.Cut(platform, "/")
	if !found {
		return nil, fmt.Errorf("not a platform: want GOOS/GOARCH")
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0"),
		Tests: true,
	}, "./...")
	if err != nil {
		return nil, err
	}
	if len(loaded) == 0 {
		return nil, fmt.Errorf("no packages in the working directory")
	}
	var problems []string
	for _, p := range loaded {
		for _, e := range p.Errors {
			problems = append(problems, e.Error())
		}
	}
	slices.SortFunc(problems, cmp.Compare[string])
	return slices.Compact(problems), nil // packages are also checked as part of their tests
}
