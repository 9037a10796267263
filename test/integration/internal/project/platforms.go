package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// checkPlatforms type-checks packages, including tests, for platforms given as GOOS/GOARCH. It finds compile
// errors without compiling, which would take many times longer because of the dependencies.
func checkPlatforms(_ context.Context, flags *flag.FlagSet, args []string) error {
	patterns := flags.String("packages", "./...", "the packages")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var failed []error
	for _, platform := range flags.Args() {
		problems, err := typeCheck(platform, strings.Fields(*patterns))
		failed = append(failed, err)
		for _, p := range problems {
			failed = append(failed, fmt.Errorf("%s: %s", platform, p))
		}
	}
	return errors.Join(failed...)
}

// typeCheck returns the type errors of packages on a platform.
func typeCheck(platform string, patterns []string) ([]string, error) {
	system, architecture, found := strings.Cut(platform, "/")
	if !found {
		return nil, fmt.Errorf("%s is not a platform: want GOOS/GOARCH", platform)
	}
	working, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Env:       append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0"),
		Tests:     true,
		ParseFile: parse(working),
	}, patterns...)
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

// parse returns a parser that omits the bodies of functions in dependencies, outside a folder. The go command
// writes the main packages of tests to files without a suffix.
func parse(folder string) func(*token.FileSet, string, []byte) (*ast.File, error) {
	return func(set *token.FileSet, name string, source []byte) (*ast.File, error) {
		file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		ours := strings.HasPrefix(name, folder+string(os.PathSeparator))
		if file == nil || ours || filepath.Ext(name) != ".go" {
			return file, err
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				function.Body = nil
			}
		}
		return file, err
	}
}
