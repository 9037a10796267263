package session

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

var gizmos = discovery.Resource{
	GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"},
	GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"},
}

// printAnswer prints the objects of an answer as JSON.
func printAnswer(t *testing.T, ctx context.Context, body io.Reader) (string, error) {
	t.Helper()
	reader, err := live.ReadAnswer(body)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	answer := &Answer{AnswerReader: reader, resource: gizmos}
	output := print.NewOutput(genericiooptions.IOStreams{Out: &out},
		print.Style{Format: print.Format{Name: print.JSON}})
	err = output.Print(ctx, []print.Section{answer.Section(nil, true)}, print.SectionOptions{})
	err = errors.Join(err, output.Close())
	return out.String(), err
}

const twoGizmos = `{"kind":"QueryAnswer","resourceVersion":"7","items":[` +
	`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"managedFields":[{"manager":"kubectl"}],"name":"a"}},` +
	`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"b"}}]}`

// TestAnswerEndsEarly verifies that the received objects are printed, and that the command fails, if the
// server or the user ends the response.
func TestAnswerEndsEarly(t *testing.T) {
	half := twoGizmos[:len(twoGizmos)-20]
	reset := errors.New("connection reset")
	for name, tt := range map[string]struct {
		body io.Reader
		want error
	}{
		"cut":   {strings.NewReader(half), io.ErrUnexpectedEOF},
		"reset": {io.MultiReader(strings.NewReader(half), iotest.ErrReader(reset)), reset},
	} {
		text, err := printAnswer(t, t.Context(), tt.body)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(),
			"the cache server ended its answer for gizmos.v1.example.com early") {
			t.Errorf("%s: got the error %v, want %v", name, err, tt.want)
		}
		if !strings.Contains(text, `"name": "a"`) || strings.Contains(text, `"kind": "List"`) {
			t.Errorf("%s: printed %s, want the gizmo a and no end of the list", name, text)
		}
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := printAnswer(t, interrupted, strings.NewReader(twoGizmos)); !errors.Is(err,
		context.Canceled) {
		t.Errorf("interrupted: got the error %v, want context.Canceled", err)
	}
}

// TestSilentServer verifies that a command says once what it waits for, long before it gives up.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errOut strings.Builder
		target := &Target{IOStreams: genericiooptions.IOStreams{ErrOut: &errOut}, Timeout: time.Minute}
		target.responses.target = target
		transport := target.responses.wrap(RoundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		}))
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/api/v1/pods", nil)
			if err == nil {
				_, err = transport.RoundTrip(request)
			}
			if cancel(); err == nil {
				t.Error("a silent server answered")
			}
		}
		synctest.Wait()
		const want = "warning: waiting: the API server does not answer GET http://server/api/v1/pods (--timeout 1m0s)\n"
		if errOut.String() != want {
			t.Errorf("stderr is %q, want %q", errOut.String(), want)
		}
	})
}

// FuzzSplitTypes checks that each accepted type occurs in the arguments once and is accepted again, and that
// errors quote the argument.
func FuzzSplitTypes(f *testing.F) {
	for _, seed := range [][2]string{
		{"certs", "cert,issuers"}, {"*.cert-manager.io", "*"}, {"certificates.v1.cert-manager.io",
			"Certificate"}, {",", ""}, {"a,,b", "a"},
		{"gizmos/a", "x"}, {"a.b..c", ".a"}, {"*.*", "a.*"}, {"a b", "\x00"}, {"pods.",
			"é"}, {"a/b/c,", "%s"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		types, err := SplitTypes([]string{first, second})
		if err != nil {
			if !errors.As(err, new(*UsageError)) || types != nil || !strings.Contains(err.Error(), `"`) {
				t.Errorf("SplitTypes(%q, %q) = %q, %v; want only a usage error with the name", first, second,
					types, err)
			}
			return
		}
		written := append(strings.Split(first, ","), strings.Split(second, ",")...)
		for i, name := range types {
			if !slices.Contains(written, name) || slices.Index(types, name) != i ||
				strings.ContainsAny(name, ",/") {
				t.Errorf("SplitTypes(%q, %q) = %q, want no %q", first, second, types, name)
			}
		}
		again, err := SplitTypes([]string{strings.Join(types, ",")})
		if diff := cmp.Diff(types, again); err != nil || diff != "" {
			t.Errorf("SplitTypes of the joined result of %q, %q: %v (-first +second):\n%s", first, second,
				err, diff)
		}
	})
}
