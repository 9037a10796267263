package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// hostileSpecs have values at which tables, templates and orders can differ: texts outside ASCII, of several
// lines and with control characters, quantities, numbers beyond floats, values of different types, null,
// lists, and missing values.
var hostileSpecs = []string{
	`{"text":"plain","number":10,"any":"10","quantity":"1Gi","bool":true,"list":["a","b"],"natural":"node-10","deep":{"x":1}}`,
	`{"text":"é","number":9,"any":"9","quantity":"500m","bool":false,"list":[],"natural":"node-9","deep":{"x":2}}`,
	`{"text":"日本語テキスト","number":-1,"any":"a10","quantity":"2","list":[1,2],"natural":"node-010","deep":{}}`,
	`{"text":"line\nbreak","number":9007199254740993,"any":"A9","quantity":"1e3","list":[{"a":1}],"natural":"Node-1"}`,
	`{"text":"tab\tand \u001b[31mred","number":0,"any":"é","quantity":"1M","natural":"node-"}`,
	`{"text":"👩‍👩‍👧 combining é","any":"","quantity":"","natural":""}`,
	`{"text":"","any":" ","quantity":"0.5","natural":"zzz"}`,
	`{"any":"z","quantity":"1Ki","natural":"Ä"}`,
	`{"text":null,"any":"<&>\u2028","natural":"node-9"}`,
}

// hostileObjects are more than the 12 that Go's unstable sort sorts by insertion.
const hostileObjects = 40

// hostileOutputs are arguments of kubectl get after the type. Each output equals that of dump.
var hostileOutputs = []string{
	"", "-o|wide", "--show-labels", "-L|app,v", "--no-headers", "--show-kind", "-o|json", "-o|yaml", "-o|kyaml", "-o|name",
	"--sort-by|.spec.any", "--sort-by|.spec.text", "--sort-by|.spec.number", "--sort-by|.spec.quantity",
	"--sort-by|.spec.natural", "--sort-by|{.spec.natural}|-o|name", "--sort-by|spec.list[0]|-o|name|-l|v=0",
	"--sort-by|.metadata.labels.app|-o|name", "--sort-by|.metadata.name|-o|json", "--sort-by|.spec.quantity|-o|yaml",
	"--sort-by|.spec.any|--no-headers", "-l|app=nobody|-o|json", "-l|app=nobody|-o|yaml",
	"-o|custom-columns=N:.metadata.name,T:.spec.text,A:.spec.any,L:.spec.list,D:.spec.deep",
	"-o|custom-columns=É:.metadata.name,日本:.spec.text|--no-headers", "-o|jsonpath={.items[*].spec.text}",
	`-o|jsonpath={range .items[*]}{.metadata.name}{"\t"}{.spec.list[1]}{"\n"}{end}`,
	`-o|jsonpath={range .items[*]}{.metadata.name} {.spec.deep.x}{"\n"}{end}`, "-o|jsonpath-as-json={.items[*].spec}",
	`-o|go-template={{range .items}}{{.metadata.name}} {{.spec.deep.x}}{{"\n"}}{{end}}`,
	`-o|go-template={{range .items}}{{.metadata.name}} {{index .spec.list 1}}{{"\n"}}{{end}}`,
	"-o|jsonpath={.items[*].metadata.managedFields[*].manager}", "-o|custom-columns=M:.metadata.managedFields[*].manager",
	"-o|json|--show-managed-fields", "h-000|-o|jsonpath={.metadata.managedFields[0].manager}",
	"h-000|-o|jsonpath={.spec.list[7]}", "h-000|-o|go-template={{.spec.nope.x.y}}", "h-003|h-000|-o|json", "h-003|h-000",
}

// TestHostileValues compares each output that the documents call equal to kubectl's, live and from files.
func TestHostileValues(t *testing.T) {
	group, namespace := harness.Group(t), harness.Namespace(t)
	crd := harness.NewCRD(group, "Boat")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	versions[0].(map[string]any)["additionalPrinterColumns"] = []any{
		map[string]any{"name": "Text", "type": "string", "jsonPath": ".spec.text"},
		map[string]any{"name": "Größe", "type": "integer", "jsonPath": ".spec.number"},
		map[string]any{"name": "Any", "type": "string", "jsonPath": ".spec.any", "priority": int64(1)},
		map[string]any{"name": "List", "type": "string", "jsonPath": ".spec.list[*]"},
		map[string]any{"name": "Bool", "type": "boolean", "jsonPath": ".spec.bool"},
	}
	must(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	harness.InstallCRDs(t, crd)
	for i := range hostileObjects {
		harness.Apply(t, hostileBoat(t, group, namespace, i))
	}
	typeName := "boats." + group
	files := filepath.Join(t.TempDir(), "boats.json")
	text := harness.Kubectl(t, "get", "crd/"+typeName, "-o", "json") +
		harness.Kubectl(t, "get", typeName, "-n", namespace, "-o", "json", "--show-managed-fields")
	must(t, os.WriteFile(files, []byte(text), 0o600))
	for _, output := range hostileOutputs {
		t.Run(output, func(t *testing.T) {
			args := append([]string{typeName, "-n", namespace}, strings.FieldsFunc(output,
				func(r rune) bool { return r == '|' })...)
			want := run(t, harness.KubectlPath(t), append([]string{"get"}, args...)...)
			for _, source := range [][]string{nil, {"--from", files}} {
				got := dump(t, append(slices.Clone(args), source...)...)
				if want.stdout != got.stdout { // an age may have changed
					got = dump(t, append(slices.Clone(args), source...)...)
					want = run(t, harness.KubectlPath(t), append([]string{"get"}, args...)...)
				}
				expectSame(t, fmt.Sprintf("stdout %v", source), want.stdout, got.stdout)
				if (want.code == 0) != (got.code == 0) {
					t.Errorf("%v: exit code %d, kubectl %d; stderr:\n%s\nkubectl:\n%s", source, got.code, want.code,
						got.stderr, want.stderr)
				}
			}
		})
	}
}

func hostileBoat(t *testing.T, group, namespace string, i int) *unstructured.Unstructured {
	t.Helper()
	var spec map[string]any
	must(t, json.Unmarshal([]byte(hostileSpecs[i%len(hostileSpecs)]), &spec))
	boat := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	if number, ok := spec["number"].(float64); ok {
		spec["number"] = int64(number)
	}
	boat.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Boat"})
	boat.SetNamespace(namespace)
	boat.SetName(fmt.Sprintf("h-%03d", (i*7)%hostileObjects))
	boat.SetLabels(map[string]string{"app": fmt.Sprint(i % 3), "v": fmt.Sprint(i % len(hostileSpecs))})
	return boat
}

// TestSnapshotsAreLive compares the output for a snapshot of all types with the output for the cluster: every
// format, by type and by name, and discovery.
func TestSnapshotsAreLive(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	file := filepath.Join(t.TempDir(), "all.snapshot")
	var types []string
	for name := range strings.FieldsSeq(harness.Kubectl(t, "api-resources", "--verbs=list,watch", "-o", "name")) {
		// These types change continuously or have an ambiguous name.
		if !slices.Contains([]string{"endpoints", "events", "events.events.k8s.io",
			"leases.coordination.k8s.io"}, name) {
			types = append(types, name)
		}
	}
	commands := [][]string{
		append([]string{"dump", "-A", "-o", "table"}, types...),
		append([]string{"dump", "-A", "-o", "wide"}, types...),
		append([]string{"dump", "-A", "-o", "json", "--show-managed-fields"}, types...),
		append([]string{"dump", "-A", "-o", "jsonl"}, types...),
		append([]string{"dump", "-A", "-o", "yaml"}, types...),
		append([]string{"dump", "-A", "-o", "name"}, types...),
		{"dump", "*.crdcache.dev", "-A", "-o", "kyaml"},
		{"dump", "wl", "-n", "edge", "-o", "csv"},
		{"dump", "workloads", "-n", "edge", "-L", "app.kubernetes.io/name", "--show-labels"},
		{"dump", "routes.v1beta1.demo.crdcache.dev", "-A", "-o", "json"},
		{"dump", "workload/dns", "-n", "edge", "-o", "yaml"},
		{"dump", "namespace/edge"},
		{"query", "workloads", "-A", "--where", ".spec.paused"},
		{"resources", "-o", "wide"},
		{"resources", "-o", "json"},
		{"tree", "workloads", "-n", "edge"},
		{"suggest", "workloads"},
	}
	run := func(args []string, more ...string) string {
		return runCrdcache(t, append(slices.Clone(args), more...)...)
	}
	// The server changes objects itself. Therefore the test repeats the snapshot until the objects before and
	// after it are equal.
	var live []string
	unchanged := false
	for attempt := 0; attempt < 10 && !unchanged; attempt++ {
		before := run(commands[2])
		run([]string{"snapshot", "save", file, "--all", "--quiet"})
		live = nil
		for _, args := range commands {
			live = append(live, run(args))
		}
		unchanged = before == run(commands[2])
	}
	if !unchanged {
		t.Fatal("all objects of the server have changed during the snapshot")
	}
	for i, args := range commands {
		got := run(args, "--from", file)
		want, got := withoutAgeValues(live[i]), withoutAgeValues(got)
		if i < 2 { // in its tables a server sorts flow schemas by precedence
			want, got = sortRows(want, "flowschema."), sortRows(got, "flowschema.")
		}
		if want != got {
			t.Errorf("%q: the snapshot differs from the cluster\n%s", args, firstDifference(want, got))
		}
	}
	run([]string{"snapshot", "info", file, "--verify"})
	if got := run([]string{"diff", file, "live", "workloads", "crds", "namespaces",
		"services"}); !strings.HasSuffix(got, "exit code 0") {
		t.Errorf("diff reports unchanged objects: %s", got)
	}
}

// sortRows sorts the rows with a prefix, which follow each other.
func sortRows(table, prefix string) string {
	start := strings.Index(table, "\n"+prefix) + 1
	end := strings.LastIndex(table, "\n"+prefix) + 1
	end += strings.Index(table[end:], "\n") + 1
	rows := slices.Sorted(strings.Lines(table[start:end]))
	return table[:start] + strings.Join(rows, "") + table[end:]
}

// runCrdcache returns all output and the exit code of a command.
func runCrdcache(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Crdcache(t), args...)
	cmd.Env = []string{"KUBECONFIG=" + harness.Kubeconfig(t), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%sexit code %d", out, cmd.ProcessState.ExitCode())
}

// firstDifference shows the position at which two texts differ.
func firstDifference(want, got string) string {
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	from := max(at-150, 0)
	return "cluster:  " + want[from:min(at+250, len(want))] + "\nsnapshot: " + got[from:min(at+250, len(got))]
}
