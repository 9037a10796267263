package controllerruntime_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// suiteTimeout limits the duration of the suite.
const suiteTimeout = 18 * time.Minute

// minSpecs is the minimum number of specs, so that the test fails if specs did not run.
const minSpecs = 271

// TestCacheSuite runs controller-runtime's tests of its cache with our cache.
func TestCacheSuite(t *testing.T) {
	program := cacheSuite.build(t, "github.com/crdcache/crdcache/adapters/controllerruntime")
	failures, passed, output := runSuite(t, program)
	if total := len(failures) + len(passed); total < minSpecs {
		t.Fatalf("%d specs ran, want at least %d:\n%s", total, minSpecs, output)
	}
	expected := map[string]string{}
	for _, e := range readExceptions(t) {
		expected[e.Name] = e.Reason
		if slices.Contains(passed, e.Name) {
			t.Errorf("%q passes: remove it from exceptions.yaml", e.Name)
		} else if _, failed := failures[e.Name]; !failed {
			t.Errorf("%q is not a spec of the suite: remove it from exceptions.yaml", e.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		if expected[name] == "" {
			t.Errorf("%s\n\t%s", name, strings.ReplaceAll(failures[name], "\n", "\n\t"))
		}
	}
	t.Logf("%d specs passed, %d failed", len(passed), len(failures))
}

// TestConsistencySuite runs controller-runtime's tests of EnableReadYourWritesConsistency with our cache and
// client.
func TestConsistencySuite(t *testing.T) {
	program := consistencySuite.build(t, "github.com/crdcache/crdcache/adapters/controllerruntime")
	failures, passed, output := runSuite(t, program)
	for name, why := range failures {
		t.Errorf("%s\n\t%s", name, strings.ReplaceAll(why, "\n", "\n\t"))
	}
	if len(passed) < 13 {
		t.Errorf("%d specs passed, want 13:\n%s", len(passed), output)
	}
}

// runSuite runs the program of the suite against the API server. It returns the failures with their reasons,
// and the passed specs and tests by name.
func runSuite(t *testing.T, program string) (failures map[string]string, passed []string, output string) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), program, "-test.v", "-test.timeout="+suiteTimeout.String(),
		"-ginkgo.timeout="+(suiteTimeout-time.Minute).String(), "-ginkgo.json-report="+report)
	// On a busy machine, Eventually needs more than its default of one second. Specs of UnsafeDisableDeepCopy
	// change the decoded copy of an object, which the cache can lose in the next garbage collection.
	command.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+harness.Kubeconfig(t),
		"GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=3m", "GOGC=1000")
	command.Dir = filepath.Dir(program)
	out, err := command.CombinedOutput()
	text, readErr := os.ReadFile(report)
	if readErr != nil {
		t.Fatalf("the suite left no report: %v (it ended with %v):\n%s", readErr, err, out)
	}
	var reports []types.Report
	must(t, json.Unmarshal(text, &reports))
	failures = map[string]string{}
	for _, r := range reports {
		for _, spec := range r.SpecReports {
			switch name := spec.FullText(); {
			case spec.State.Is(types.SpecStateFailureStates):
				failures[name] = spec.FailureMessage() + "\n" + spec.FailureLocation().String()
			case spec.State == types.SpecStatePassed && spec.LeafNodeType == types.NodeTypeIt:
				passed = append(passed, name)
			}
		}
	}
	for _, verdict := range testResults.FindAllSubmatch(out, -1) {
		switch name := string(verdict[2]); {
		case name == "TestSource": // runs the specs
		case bytes.Equal(verdict[1], []byte("PASS")):
			passed = append(passed, name)
		default:
			failures[name] = "see the output of " + string(verdict[1])
		}
	}
	return failures, passed, string(out)
}

// testResults match the lines with results of tests.
var testResults = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL): (\S+)`)

// exception is a spec of controller-runtime's suite that fails with this cache, with the reason.
type exception struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// readExceptions reads the list of exceptions.
func readExceptions(t *testing.T) []exception {
	t.Helper()
	text, err := os.ReadFile("exceptions.yaml")
	must(t, err)
	var list struct {
		Exceptions []exception `json:"exceptions"`
	}
	must(t, yaml.UnmarshalStrict(text, &list))
	return list.Exceptions
}

// TestDocumentedExceptions checks that the documentation lists exactly the exceptions.
func TestDocumentedExceptions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/controller-runtime.md")
	must(t, err)
	documented := 0
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| spec: ") {
			documented++
		}
	}
	list := readExceptions(t)
	for _, e := range list {
		if e.Reason == "" {
			t.Errorf("%q has no reason", e.Name)
		}
		if line := "| spec: " + e.Name + " | " + e.Reason + " |\n"; !strings.Contains(string(page), line) {
			t.Errorf("docs/controller-runtime.md does not contain the line %q", line)
		}
	}
	if documented != len(list) {
		t.Errorf("docs/controller-runtime.md lists %d specs that fail, want the %d of exceptions.yaml",
			documented, len(list))
	}
}

type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Color string `json:"color"`
	} `json:"spec"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]widget, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*widget)
	}
	return &out
}

type widgets struct{ schema.GroupVersion }

func (w widgets) scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(w.WithKind("Widget"), &widget{})
	scheme.AddKnownTypeWithName(w.WithKind("WidgetList"), &widgetList{})
	metav1.AddToGroupVersion(scheme, w.GroupVersion)
	return scheme
}

func (w widgets) new(namespace, name, color string) *unstructured.Unstructured {
	o := w.unstructured().(*unstructured.Unstructured)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.Object["spec"] = map[string]any{"color": color}
	return o
}

func (w widgets) unstructured() client.Object {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(w.WithKind("Widget"))
	return o
}

func (w widgets) metadata() client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(w.WithKind("Widget"))
	return o
}

func (w widgets) typed() client.Object { return &widget{} }
