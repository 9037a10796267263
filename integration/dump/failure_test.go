package dump_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestUsage names missing types: a wrong command line is refused before the first request.
func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		text string
	}{
		{"no type", nil, "at least one type"},
		{"unknown flag", []string{"widgets", "--frobnicate"}, "--frobnicate"},
		{"unknown format", []string{"widgets", "-o", "xml"}, `"xml"`},
		{"type with a name", []string{"pods,widgets/one"}, "TYPE/NAME"},
		{"namespace and all of them", []string{"widgets", "-A", "-n", "default"}, "cannot be used together"},
		{"negative timeout", []string{"widgets", "--timeout", "-1s"}, "negative"},
	} {
		t.Run(tc.name, func(t *testing.T) { dump(t, tc.args...).expectError(t, exitUsage, tc.text) })
	}
}

func TestBadKubeconfig(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"garbage":   "\x00\x01 this is: [no YAML",
		"empty":     "",
		"authority": "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority: nowhere.pem}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		args []string
		text string
	}{
		{"missing file", []string{"--kubeconfig", filepath.Join(dir, "missing")}, "missing"},
		{"garbage", []string{"--kubeconfig", filepath.Join(dir, "garbage")}, "garbage"},
		{"empty", []string{"--kubeconfig", filepath.Join(dir, "empty")}, ""},
		{"missing certificate authority", []string{"--kubeconfig", filepath.Join(dir, "authority")},
			"nowhere.pem"},
		{"unknown context", []string{"--context", "elsewhere"}, `"elsewhere"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dump(t, append([]string{"widgets"}, tc.args...)...).expectError(t, exitFailed, tc.text)
		})
	}
}

func TestUnreachableServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dump(t, "certificates", "--server", "https://"+address).expectError(t, exitFailed, address)
}

func TestUnknownType(t *testing.T) {
	for _, name := range []string{"nonsense", "nonsense.example.org", "certificates.v9.cert-manager.io"} {
		t.Run(name, func(t *testing.T) { dump(t, name, "-A").expectError(t, exitFailed, name) })
	}
	t.Run("beside another", func(t *testing.T) {
		r := dump(t, "nonsense,namespaces", "-o", "name")
		expectSame(t, "output", harness.Kubectl(t, "get", "namespaces", "-o", "name"), r.stdout)
		result{stderr: r.stderr, code: r.code}.expectError(t, exitFailed, "nonsense")
	})
}

func TestForbidden(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "widgets"}
	harness.InstallCRDs(t, harness.NewCRD(widgets.Group, "Widget"))
	ns := harness.Namespace(t)
	harness.Apply(t, widget(widgets.Group, ns, "a"), widget(widgets.Group, ns, "b"))
	name := widgets.GroupResource().String()

	t.Run("alone", func(t *testing.T) {
		r := dump(t, name, "-A", "--context", harness.UnprivilegedContext)
		r.expectError(t, exitForbidden, name)
	})
	t.Run("beside another", func(t *testing.T) {
		harness.GrantRead(t, widgets)
		for _, format := range []string{"json", "name", "table"} {
			want := mustDump(t, name, "-A", "-o", format)
			r := dump(t, "secrets,"+name, "-A", "-o", format, "--context", harness.UnprivilegedContext)
			if format != "table" { // ages in tables may differ by a second
				expectSame(t, format, want, r.stdout)
			} else if heads, _, _ := strings.Cut(want, "\n"); !strings.HasPrefix(r.stdout, heads+"\n") ||
				strings.Contains(r.stderr, "warning") {
				t.Errorf("the columns, which the user may not read, are %q, want those of %q; stderr:\n%s",
					r.stdout, heads, r.stderr)
			}
			if strings.Count(r.stdout, "\n") < 2 {
				t.Errorf("%s: the permitted type is not printed:\n%s", format, r.stdout)
			}
			if r.code != exitForbidden || strings.Count(r.stderr, "error: ") != 1 ||
				!strings.Contains(r.stderr, "secrets") {
				t.Errorf("%s: exit code %d, stderr:\n%s", format, r.code, r.stderr)
			}
		}
	})
	t.Run("nobody", func(t *testing.T) {
		r := dump(t, name, "-A", "--token", "nobody's")
		r.expectError(t, exitForbidden, "")
	})
}

func TestEmptyTable(t *testing.T) {
	ns := harness.Namespace(t)
	for _, tc := range []struct{ scope, stderr string }{
		{"--namespace=" + ns, "No resources found in " + ns + " namespace.\n"},
		{"--all-namespaces", "No resources found\n"},
	} {
		r := dump(t, "limitranges", tc.scope)
		if want := (result{stderr: tc.stderr}); r != want {
			t.Errorf("with %s the result is %+v, want %+v", tc.scope, r, want)
		}
	}
}
