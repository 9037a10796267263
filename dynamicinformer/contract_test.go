package dynamicinformer

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestContractNamesRealTests fails if the contract of Informer names a test that does not exist in this
// package, in internal/informer or below, or has a sentence without a test.
func TestContractNamesRealTests(t *testing.T) {
	tests, contract := map[string]bool{}, ""
	for _, dir := range []string{".", "../internal/informer", "../internal/informer/delivery", "../internal/store"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		must(t, err)
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			must(t, err)
			for _, decl := range file.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					tests[d.Name.Name] = tests[d.Name.Name] || strings.HasSuffix(path, "_test.go")
				case *ast.GenDecl:
					if doc := d.Doc.Text(); dir == "." && strings.Contains(doc, "Contract\n") {
						contract = doc
					}
				}
			}
		}
	}
	_, contract, _ = strings.Cut(contract, "names no test.\n")
	names := regexp.MustCompile(`Test[A-Z]\w+`).FindAllString(contract, -1)
	if len(names) < 20 {
		t.Fatalf("the contract names only %d tests, want at least 20", len(names))
	}
	for _, name := range names {
		if !tests[name] {
			t.Errorf("the contract names the test %s, which does not exist", name)
		}
	}
	heading := regexp.MustCompile(`(?m)^(Cache|Handlers|Notifications|Failures|Incarnations|End)\.`)
	pinned := true
	for _, sentence := range regexp.MustCompile(`\.\s`).Split(heading.ReplaceAllString(contract, ""), -1) {
		if strings.TrimSpace(sentence) == "" {
			continue
		}
		before := pinned
		if pinned = strings.Contains(sentence, "(Test"); !pinned && !before {
			t.Errorf("the contract names no test for the sentence before %q",
				strings.Join(strings.Fields(sentence), " "))
		}
	}
	if !pinned {
		t.Error("the contract names no test for the last sentence")
	}
}

// TestObjectsAreShared verifies that readers and handlers get the same object.
func TestObjectsAreShared(t *testing.T) {
	for _, mode := range []StorageMode{StoragePacked, StorageObject} {
		t.Run(mode.String(), func(t *testing.T) {
			server := newServer(t)
			server.Create(t, widgets, widget("web", "a"))
			i := startSynced(t, newFactory(t, server,
				Options{Defaults: ResourceOptions{Storage: Storage{Mode: mode}}}))
			delivered := make(chan any, 1)
			if _, err := i.AddEventHandler(
				cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { delivered <- obj }}); err != nil {
				t.Fatal(err)
			}
			handled := <-delivered // this test retains the object from here on
			for range 2 {
				read, err := i.Lister().ByNamespace("web").Get("a")
				must(t, err)
				if any(read) != handled {
					t.Error("a reader and a handler got different objects")
				}
			}
		})
	}
}

// TestRelistSkipsStates verifies that after an interrupted watch, handlers receive only the latest state of
// an object.
func TestRelistSkipsStates(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		var events []string
		color := func(obj any) string { return obj.(*unstructured.Unstructured).GetLabels()["color"] }
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { events = append(events, "add "+color(obj)) },
			UpdateFunc: func(_, obj any) { events = append(events, "update "+color(obj)) },
		})
		must(t, err)
		start(t, f)
		time.Sleep(time.Minute)
		server.AddFaults(fault(widgetsPath, "watch", 410), fault(widgetsPath, "watch-list", 503),
			fault(widgetsPath, "list", 503))
		server.CloseClientConnections()
		synctest.Wait()
		for _, c := range []string{"red", "green"} {
			u := widget("web", "a")
			u.SetLabels(map[string]string{"color": c})
			server.Update(t, widgets, u)
		}
		server.Repair()
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ", "update green"}, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestHandlerCannotAwaitShutdown verifies that Shutdown returns an error if a handler calls it, because it
// would wait for that handler.
func TestHandlerCannotAwaitShutdown(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		var failure error
		if _, err := mustInformer(t, f,
			widgets).AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			failure = f.Shutdown(ctx)
		}}); err != nil {
			t.Fatal(err)
		}
		start(t, f)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		var left *status.ShutdownError
		if !errors.As(failure, &left) || len(left.Running) != 1 {
			t.Errorf("Shutdown() from a handler = %v, want a status.ShutdownError with one informer", failure)
		}
	})
}

// TestHandlerCannotAwaitItself verifies that a handler's registration does not sync before its first calls
// have returned.
func TestHandlerCannotAwaitItself(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		var registration *delivery.Registration
		var failure error
		added, err := mustInformer(t, f,
			widgets).AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			failure = registration.WaitForSync(ctx)
		}})
		must(t, err)
		registration = added.(*delivery.Registration)
		start(t, f)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(failure, context.DeadlineExceeded) || !registration.HasSynced() {
			t.Errorf("WaitForSync() from the handler = %v, afterwards HasSynced() = %v; want DeadlineExceeded, true", failure, registration.HasSynced())
		}
	})
}
