package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// checkPlatforms type-checks the packages of the module in the working directory, including tests, for
// platforms given as GOOS/GOARCH. It finds compile errors without compiling, which would take many times
// longer because of the dependencies.
func checkPlatforms(_ context.Context, flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	var failed []error
	for _, platform := range flags.Args() {
		problems, err := typeCheck(platform)
		failed = append(failed, err)
		for _, p := range problems {
			failed = append(failed, fmt.Errorf("%s: %s", platform, p))
		}
	}
	return errors.Join(failed...)
}

// typeCheck returns the type errors of the module's packages on a platform.
func typeCheck(platform string) ([]string, error) {
	system, architecture, found := strings.Cut(platform, "/")
	if !found {
		return nil, fmt.Errorf("%s is not a platform: want GOOS/GOARCH", platform)
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
