package testcluster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/testcluster"
)

func TestInformer(t *testing.T) {
	ctx := t.Context()
	cluster, err := testcluster.New(ctx, testcluster.Options{FS: files, Paths: []string{"crds"}})
	if err != nil {
		t.Fatal(err)
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config()})
	if err != nil {
		t.Fatal(err)
	}
	defer factory.Shutdown(ctx)
	informer, err := factory.ForResource(widgets)
	if err != nil {
		t.Fatal(err)
	}
	added := make(chan string, 1)
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		added <- obj.(metav1.Object).GetName()
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Client().Resource(widgets).Namespace("default").Create(ctx, newWidget("a"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if name := <-added; name != "a" {
		t.Errorf("the handler received the widget %s, want a", name)
	}
}

var samplePattern = regexp.MustCompile("(?s)<!-- ([^ ]+): ([^>]+) -->\n```go\n(.*?)```\n")

// TestSamples verifies that the samples in docs/testing.md equal the source of tests.
func TestSamples(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	samples := samplePattern.FindAllStringSubmatch(string(page), -1)
	if fences := strings.Count(string(page), "```go\n"); fences != len(samples) || fences == 0 {
		t.Errorf("%d of %d samples have a comment with their test", len(samples), fences)
	}
	for _, sample := range samples {
		var want []string
		for name := range strings.SplitSeq(sample[2], ", ") {
			want = append(want, declaration(t, filepath.Join(root, sample[1]), name))
		}
		if got := sample[3]; got != strings.Join(want, "\n") {
			t.Errorf("the sample of %s differs from its source in %s:\n%s\nwant:\n%s", sample[2], sample[1],
				got,
				strings.Join(want, "\n"))
		}
	}
}

// declaration returns the source of a type or function of a file, with its comment.
func declaration(t *testing.T, path, name string) string {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		start, declared := d.Pos(), ""
		switch d := d.(type) {
		case *ast.FuncDecl:
			if declared = d.Name.Name; d.Doc != nil {
				start = d.Doc.Pos()
			}
		case *ast.GenDecl:
			if spec, ok := d.Specs[0].(*ast.TypeSpec); ok {
				declared = spec.Name.Name
			}
			if d.Doc != nil {
				start = d.Doc.Pos()
			}
		}
		if declared == name {
			return string(source[files.Position(start).Offset:files.Position(d.End()).Offset]) + "\n"
		}
	}
	t.Fatalf("%s has no declaration of %s", path, name)
	return ""
}
