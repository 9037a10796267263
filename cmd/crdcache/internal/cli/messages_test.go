package cli_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewriteMessages = flag.Bool("rewrite-messages", false, "write all messages into testdata/messages.txt")

// TestMessages writes the texts of all errors, warnings and notes of the command to testdata/messages.txt for
// review, and compares them with the file.
func TestMessages(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text := messageOfCall(n); text != "" {
				all = append(all, fmt.Sprintf("%s: %q", filepath.Base(filepath.Dir(name)), text))
			}
			return true
		})
	}
	slices.Sort(all)
	got := slices.Compact(all)
	golden := filepath.Join("testdata", "messages.txt")
	if *rewriteMessages {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), got); diff != "" {
		t.Errorf("review the messages, then run with -rewrite-messages (-want +got):\n%s", diff)
	}
}

// messageOfCall returns the text of a call that creates or prints a message, or "".
func messageOfCall(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	name := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
	case *ast.Ident:
		name = f.Name
	}
	if !slices.Contains([]string{"Errorf", "New", "Usagef", "UsageLines", "Fprintf", "Fprintln", "warn", "Warn",
		"Notef", "notef", "printLine", "printLineLocked", "printLater", "Sprintf"}, name) {
		return ""
	}
	for _, arg := range call.Args {
		if text := literalText(arg); strings.Contains(text, " ") {
			return text
		}
	}
	return ""
}

// literalText returns a string literal or the concatenation of literals, or "".
func literalText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literalText(e.X) + literalText(e.Y)
	}
	return ""
}
