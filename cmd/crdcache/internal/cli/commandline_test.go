package cli_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var (
	gizmos = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	zones  = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "zones"}
	crds   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
)

const (
	gizmosPath = "/apis/example.com/v1/gizmos"
	zonesPath  = "/apis/example.com/v1/zones"
)

var newObjectAge = regexp.MustCompile(`\b\d+s\b`)

// newCluster returns a server with two types: a namespaced type with printer columns, and a cluster-scoped
// type.
func newCluster(t *testing.T) *apitest.Server {
	t.Helper()
	server := apitest.New(t,
		apitest.Type{GVR: gizmos, Kind: "Gizmo", Singular: "gizmo", Namespaced: true,
			ShortNames: []string{"gz"}, Categories: []string{"things"}},
		apitest.Type{GVR: zones, Kind: "Zone", Singular: "zone", Categories: []string{"things"}})
	server.Create(t, crds, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gizmos.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "gizmos", "kind": "Gizmo"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"additionalPrinterColumns": []any{
					map[string]any{"name": "Color", "type": "string", "jsonPath": ".spec.color"},
					map[string]any{"name": "Size", "type": "integer", "jsonPath": ".spec.size",
						"priority": int64(1)},
				},
			}},
		},
		"status": map[string]any{
			"acceptedNames": map[string]any{
				"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "shortNames": []any{"gz"},
				"categories": []any{"things"},
			},
			"conditions": []any{
				map[string]any{"type": "NamesAccepted", "status": "True"},
				map[string]any{"type": "Established", "status": "True"},
			},
		},
	}})
	return server
}

func newObject(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}

type result struct {
	code        int
	out, errOut string
}

func (r result) expect(t *testing.T, code int, out string) {
	t.Helper()
	if r.code != code || r.out != out {
		t.Errorf("exit code %d and stdout\n%swant %d and\n%sstderr:\n%s", r.code, r.out, code, out, r.errOut)
	}
}

// crdcache runs a command line without the machine's kubeconfig.
func crdcache(t *testing.T, args ...string) result {
	t.Helper()
	hideSettings(t)
	return runMain(t, args...)
}

// hideSettings hides the settings of the user who runs the test.
func hideSettings(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
}

// runMain runs a command line. It can be called concurrently, after hideSettings.
func runMain(t *testing.T, args ...string) result {
	var out, errOut bytes.Buffer
	code := cli.Main(t.Context(), append([]string{"crdcache"}, args...), strings.NewReader(""), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// TestUsageErrors checks that an invalid command line gives one line on stderr, nothing on stdout, and no
// request.
func TestUsageErrors(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown command": {[]string{"dmp"},
			`unknown command "dmp" for "crdcache"; did you mean dump or mcp?; see 'crdcache --help'`},
		"unknown flag": {[]string{"dump", "x", "--nope"},
			"unknown flag: --nope; see 'crdcache dump --help'"},
		"unknown root flag":  {[]string{"--nope"}, "unknown flag: --nope; see 'crdcache --help'"},
		"flag without value": {[]string{"dump", "x", "-o"}, "flag needs an argument"},
		"duration":           {[]string{"dump", "x", "--timeout", "soon"}, "--timeout"},
		"negative timeout": {[]string{"dump", "x", "--timeout", "-1s"},
			"--timeout is -1s: it must not be negative"},
		"label selector": {[]string{"dump", "x", "-l", "a=b=c"}, "--selector (-l): "},
		"field selector": {[]string{"dump", "x", "--field-selector", "a"},
			"--field-selector: invalid selector"},
		"template": {[]string{"dump", "x", "-o", "jsonpath={.a"}, "parse the template of -o jsonpath: "},
		"two scopes": {[]string{"dump", "x", "-A", "-n", "web"},
			"--namespace and --all-namespaces cannot be used together"},
		"kubectl's verb": {[]string{"describe", "pods"},
			`unknown command "describe" for "crdcache"; did you mean dump?`},
		"type beside objects": {[]string{"dump", "zones", "gizmos/a"},
			`"zones" is not TYPE/NAME like another argument`},
		"object and watch": {[]string{"dump", "gizmos/a", "-w"}, "--field-selector metadata.name=a"},
		"order and watch": {[]string{"dump", "gizmos", "-w", "--sort-by", ".a"},
			"--sort-by and --watch cannot be used together"},
		"order": {[]string{"dump", "gizmos", "--sort-by", "{.a"},
			`--sort-by: "{.a" is not one path`},
		"object in a list":    {[]string{"dump", "zones,gizmos/a"}, `"gizmos/a" looks like TYPE/NAME`},
		"empty type":          {[]string{"dump", "zones,,gizmos"}, `"zones,,gizmos" has an empty type name`},
		"comma alone":         {[]string{"dump", ","}, `"," has an empty type name`},
		"nothing named":       {[]string{"dump", ""}, `"" has an empty type name`},
		"several lines in it": {[]string{"dump", "x", "-o", "a\nb"}, "unknown output format"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := newCluster(t)
			requestsBefore := len(server.Requests())
			r := crdcache(t, append(slices.Clone(tt.args), "-s", server.URL)...)
			if tt.args[len(tt.args)-1] == "-o" || tt.args[0] != "dump" {
				r = crdcache(t, tt.args...)
			}
			r.expect(t, cli.ExitUsage, "")
			if !strings.HasPrefix(r.errOut, "error: ") || !strings.Contains(r.errOut, tt.want) ||
				strings.Count(r.errOut, "\n") != 1 {
				t.Errorf("stderr is %q, want one line with %q", r.errOut, tt.want)
			}
			if requests := server.Requests()[requestsBefore:]; len(requests) > 0 {
				t.Errorf("unexpected requests: %v", requests)
			}
		})
	}
}

// TestHelpWithoutCluster verifies that help is printed without a cluster or a valid kubeconfig.
func TestHelpWithoutCluster(t *testing.T) {
	server := newCluster(t)
	requestsBefore := len(server.Requests())
	invalidKubeconfig := writeTempFile(t, "config", "{")
	for _, args := range [][]string{{}, {"--help"}, {"help", "dump"}, {"dump", "--help"},
		{"dump", "gizmos", "-h"}} {
		if slices.Contains(args, "dump") && args[0] != "help" {
			args = append(args, "-s", server.URL, "--kubeconfig", invalidKubeconfig)
		}
		r := crdcache(t, args...)
		if r.code != cli.ExitOK || r.errOut != "" || !strings.Contains(r.out, "Usage:\n  crdcache ") {
			t.Errorf("%q: exit code %d, want %d; stdout\n%s\nstderr %q", args, r.code, cli.ExitOK, r.out,
				r.errOut)
		}
	}
	if requests := server.Requests()[requestsBefore:]; len(requests) > 0 {
		t.Errorf("unexpected requests: %v", requests)
	}
}

// TestHelpFitsScreen checks that each help text has at most 40 lines of 80 columns.
func TestHelpFitsScreen(t *testing.T) {
	for _, cmd := range append(allCommands(cli.Command()), cli.Command()) {
		if strings.Contains(cmd.CommandPath(), " completion ") {
			continue // commands that cobra adds
		}
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		lines := strings.Split(strings.TrimSuffix(crdcache(t, args...).out, "\n"), "\n")
		if len(lines) > 40 {
			t.Errorf("%q has %d lines, want at most 40", args, len(lines))
		}
		for _, line := range lines {
			if len(line) > 80 {
				t.Errorf("%q has a line of %d columns, want at most 80: %s", args, len(line), line)
			}
		}
	}
}

func TestNameOfPlugin(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/crdcache": "crdcache", "crdcache": "crdcache", "anything": "crdcache",
		"/opt/bin/kubectl-crdcache": "kubectl crdcache", "kubectl-crdcache": "kubectl crdcache",
	} {
		var out, errOut bytes.Buffer
		code := cli.Main(t.Context(), []string{program, "dump", "--help"}, nil, &out, &errOut)
		if code != cli.ExitOK || !strings.Contains(out.String(),
			"Usage:\n  "+want+" dump TYPE... | TYPE NAME... | TYPE/NAME... [flags]\n") {
			t.Errorf("%s: exit code %d, want %d; help\n%s", program, code, cli.ExitOK, out.String())
		}
		if !strings.Contains(out.String(), "\n  "+want+" dump cert,issuers -n web\n") {
			t.Errorf("%s: the examples do not name the program in\n%s", program, out.String())
		}
		errOut.Reset()
		cli.Main(t.Context(), []string{program, "dump"}, nil, io.Discard, &errOut)
		if !strings.Contains(errOut.String(), "'"+want+" dump ") {
			t.Errorf("%s: the error %q does not name the program", program, errOut.String())
		}
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	writeFile := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	server := newCluster(t)
	server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil), newObject("Gizmo", "db", "b", nil))
	validKubeconfig := writeFile("good", `{"apiVersion":"v1","kind":"Config","current-context":"web",
		"clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}],
		"contexts":[{"name":"web","context":{"cluster":"c","namespace":"web"}},{"name":"db","context":{"cluster":"c","namespace":"db"}}]}`)

	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"missing": {[]string{"--kubeconfig", filepath.Join(dir, "none")}, "no such file"},
		"garbage": {[]string{"--kubeconfig", writeFile("garbage", "\x00{[")}, "read the kubeconfig: "},
		"unknown context": {[]string{"--kubeconfig", validKubeconfig, "--context", "none"},
			`context "none" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append([]string{"dump", "gizmos"}, tt.args...)...)
			r.expect(t, cli.ExitFailed, "")
			if !strings.Contains(r.errOut, tt.want) || strings.Count(r.errOut, "\n") != 1 {
				t.Errorf("stderr is %q, want one line with %q", r.errOut, tt.want)
			}
		})
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"its namespace":     {nil, "gizmo.example.com/a\n"},
		"another context":   {[]string{"--context", "db"}, "gizmo.example.com/b\n"},
		"another namespace": {[]string{"-n", "db"}, "gizmo.example.com/b\n"},
		"all":               {[]string{"-A"}, "gizmo.example.com/b\ngizmo.example.com/a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			crdcache(t, append([]string{"dump", "gizmos", "-o", "name", "--kubeconfig", validKubeconfig},
				tt.args...)...).expect(t, cli.ExitOK, tt.want)
		})
	}
}

var rewriteScripts = flag.Bool("rewrite-scripts", false,
	"write the output of the commands in scripts/ into the expected output")

// TestScripts runs scripts/*.txtar, each in a directory with links to the CRDs, objects and index configs of
// testdata.
func TestScripts(t *testing.T) {
	data, err := filepath.Abs("../../../../testdata")
	must(t, err)
	files, err := filepath.Glob("scripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	if testing.Short() && !*rewriteScripts { // each command of a script is a process
		files = files[:len(files)/3]
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		UpdateScripts:       *rewriteScripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"crds", "objects", "indexes"} {
				if err := os.Symlink(filepath.Join(data, name),
					filepath.Join(env.WorkDir, name)); err != nil {
					return err
				}
			}
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "no-kubeconfig"))
			env.Setenv("LC_ALL", "C.UTF-8")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": checkExitCode},
	})
}

// checkExitCode implements "exits CODE PROGRAM ARGS...", which checks an exit code.
func checkExitCode(ts *testscript.TestScript, not bool, args []string) {
	if not || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	var exited *exec.ExitError
	switch {
	case errors.As(err, &exited):
		code = exited.ExitCode()
	case err != nil:
		ts.Fatalf("running the command: %v", err)
	}
	if code != want {
		fmt.Fprint(ts.Stderr(), ts.ReadFile("stderr"))
		ts.Fatalf("the exit code is %d, want %d", code, want)
	}
}
