package web

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
)

const workloadsID = "workloads.demo.crdcache.dev/v1"

func TestTypes(t *testing.T) {
	s := newFixture(t, Options{})
	var ids []string
	for _, typ := range s.handler.source.visibleTypes() {
		ids = append(ids, typ.id)
	}
	want := []string{"environments.demo.crdcache.dev/v1", "releases.demo.crdcache.dev/v1",
		"routes.demo.crdcache.dev/v1", "secrets/v1", workloadsID, "namespaces/v1"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	data := awaitEvent(t, s.openStream(), "types",
		func(data string) bool { return strings.Contains(data, workloadsID) })
	for _, part := range []string{`"title":"memory"`, `"state":"Synced"`,
		`"type":"Reachable","status":"True"`} {
		if !strings.Contains(data, part) {
			t.Errorf("%s is missing in %s", part, data)
		}
	}
	page := getJSON[typePage](s, "type", "type", workloadsID)
	if page.Kind != "Workload" || !page.Namespaced || len(page.Columns) != 15 ||
		page.Columns[0].Name != "Environment" || page.Columns[0].Sort != ".spec.environment" ||
		page.Columns[7].Sort != "age" || !page.Columns[8].Wide {
		t.Errorf("the page of the type is %+v, want the columns of its CRD", page)
	}
	if len(page.Indexes) != 12 || page.Indexes[0].Name != "namespace" || len(page.References) != 1 {
		t.Errorf("the indexes are %+v and the references %v, want 12 and 1", page.Indexes, page.References)
	}
	s.get(pageURL("type", "type", "nothing/v1"), http.StatusNotFound)
}

func TestTable(t *testing.T) {
	s := newFixture(t, Options{})
	all := getJSON[tableAnswer](s, "table", "type", workloadsID, "sort", "namespace", "descending", "1")
	result := getJSON[tableAnswer](s, "table", "type", workloadsID, "query", "team=ledger && where(.spec.env)",
		"sort", ".spec.tier")
	if result.Total == 0 || result.Total >= all.Total || all.Total != all.Objects ||
		result.ResourceVersion == "" {
		t.Fatalf("%d of %d objects in %+v, want some", result.Total, all.Total, result)
	}
	plan := strings.Join(result.Plan, "\n")
	for _, part := range []string{"Starts with team=ledger (", "Reads the rest to check where(",
		"In the order of .spec.tier", "Found "} {
		if !strings.Contains(plan, part) {
			t.Errorf("the plan does not contain %q:\n%s", part, plan)
		}
	}
	if scan := getJSON[tableAnswer](s, "table", "type", workloadsID, "query", "!team"); !scan.Scan {
		t.Errorf("Scan = false for a query without an index: %+v", scan)
	}
	rows := getJSON[rowsAnswer](s, "rows", "type", workloadsID, "table", result.Table, "from", "0")
	if len(rows.Rows) != result.Total || len(rows.Rows[0].Cells) != 15 {
		t.Fatalf("the rows are %+v, want all found objects", rows)
	}
	var ledger tableRow
	for _, row := range rows.Rows {
		if row.Key == "payments/ledger" {
			ledger = row
		}
	}
	if len(ledger.Cells) == 0 || ledger.Cells[0] != "production-eu" || ledger.Cells[2] != "6" ||
		ledger.Cells[11] != "9007199254740993" {
		t.Errorf("the row is %+v, want exact numbers", ledger)
	}
	if rows := getJSON[rowsAnswer](s, "rows", "type", workloadsID, "table", result.Table, "from",
		"100000"); len(rows.Rows) != 0 {
		t.Errorf("rows after the last one = %+v, want none", rows)
	}
	s.get(pageURL("rows", "type", "routes.demo.crdcache.dev/v1", "table", result.Table, "from", "0"),
		http.StatusGone)
	s.get(pageURL("rows", "type", workloadsID, "table", result.Table, "from", "-1"), http.StatusBadRequest)
}

func TestInvalidQueries(t *testing.T) {
	s := newFixture(t, Options{})
	tests := map[string]struct {
		query  string
		status int
		want   string
	}{
		"index":    {"team=ledger && taem=x", 400, `"offset":15,"length":6`},
		"behind é": {`team="é" && taem=x`, 400, `"offset":12,"length":6`},
		"syntax":   {"team=", 400, `"error":`},
		"long":     {strings.Repeat("a", maxQueryBytes+1), 413, "8192 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.get(pageURL("table", "type", workloadsID, "query", tt.query),
				tt.status); !strings.Contains(got, tt.want) {
				t.Errorf("response %s, want %s in it", got, tt.want)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	s := newFixture(t, Options{})
	tests := map[string]struct{ query, want string }{
		"index":    {"te", "team"},
		"operator": {"team ", "="},
		"value":    {"team=led", "ledger"},
		"second":   {"team=ledger && env", "environment"},
		"join":     {"team=ledger ", "&& "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := getJSON[completeAnswer](s, "complete", "type", workloadsID, "query", tt.query)
			if len(got.Proposals) == 0 || got.Proposals[0].Text != tt.want {
				t.Errorf("proposals are %+v, want %s first", got, tt.want)
			}
		})
	}
}

func TestTone(t *testing.T) {
	for text, want := range map[string]string{
		"nodes Ready True": "good", "nodes Ready False": "bad", "nodes Ready Unknown": "open",
		"nodes MemoryPressure False": "good", "nodes MemoryPressure True": "bad", "nodes Rebooting True": "open",
		"pods Ready False": "bad", "pods Ready False PodCompleted": "open", "pods DisruptionTarget True": "bad",
		"namespaces NamespaceContentRemaining True":                               "open",
		"persistentvolumeclaims FileSystemResizePending True":                     "open",
		"deployments.apps Progressing False ProgressDeadlineExceeded":             "bad",
		"deployments.apps Progressing True":                                       "good",
		"deployments.apps ReplicaFailure True":                                    "bad",
		"horizontalpodautoscalers.autoscaling ScalingLimited True":                "open",
		"horizontalpodautoscalers.autoscaling ScalingActive False":                "bad",
		"jobs.batch Failed True":                                                  "bad",
		"jobs.batch Complete True":                                                "good",
		"jobs.batch Suspended True":                                               "open",
		"jobs.batch Complete False":                                               "open",
		"poddisruptionbudgets.policy DisruptionAllowed True":                      "good",
		"poddisruptionbudgets.policy DisruptionAllowed False":                     "open",
		"flowschemas.flowcontrol.apiserver.k8s.io Dangling False":                 "good",
		"flowschemas.flowcontrol.apiserver.k8s.io Dangling True":                  "bad",
		"certificatesigningrequests.certificates.k8s.io Denied True":              "bad",
		"certificatesigningrequests.certificates.k8s.io Approved True":            "good",
		"customresourcedefinitions.apiextensions.k8s.io Established True":         "good",
		"customresourcedefinitions.apiextensions.k8s.io NonStructuralSchema True": "bad",
		"customresourcedefinitions.apiextensions.k8s.io Terminating True":         "open",
		"apiservices.apiregistration.k8s.io Available False":                      "bad",
		"statefulsets.apps Ready True":                                            "open",
		"widgets.example.com Ready True":                                          "good",
		"widgets.example.com DatabaseReady False":                                 "bad",
		"widgets.example.com NodeNotReady False":                                  "good",
		"widgets.example.com Unhealthy True":                                      "bad",
		"widgets.example.com Degraded True":                                       "bad",
		"widgets.example.com Stalled False":                                       "good",
		"widgets.example.com Progressing False":                                   "open",
		"widgets.example.com Paused True":                                         "open",
		"widgets.example.com Blorp False":                                         "open",
		"widgets.example.com Ready ":                                              "open",
	} {
		c := strings.Split(text+" ", " ")
		if got := toneOf(schema.ParseGroupResource(c[0]), c[1], c[2], c[3]); got != want {
			t.Errorf("the tone of %s is %s, want %s", text, got, want)
		}
	}
}

// TestFirstListIsNoChange verifies that only changes after the first list are counted as changes, and that
// the buckets of all types end at the same time.
func TestFirstListIsNoChange(t *testing.T) {
	s := newFixture(t, Options{})
	f, now := newFigures(s.handler.source), time.Now()
	f.sample(now)
	informer, err := s.factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	must(t, err)
	s.load(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": "payments"}})
	f.sample(now.Add(sampleInterval)) // before its list
	must(t, s.factory.Start(t.Context()))
	must(t, informer.WaitForSync(t.Context()))
	f.sample(now.Add(2 * sampleInterval))
	s.update(workloads, "payments", "ledger", `{"spec":{"replicas":7}}`)
	changed := func() (all map[string]int64) {
		all = map[string]int64{}
		rows, _, _ := f.latest()
		for _, r := range rows {
			if r.Changed > 0 {
				all[r.ID] = r.Changed
			}
		}
		return all
	}
	eventually(t, func() bool { f.sample(now.Add(5 * bucketInterval)); return len(changed()) > 0 })
	f.sample(now.Add(8 * bucketInterval))
	rows, bucket, _ := f.latest()
	if want := now.Add(8*bucketInterval).UnixMilli() / bucketInterval.Milliseconds(); bucket != want {
		t.Errorf("the last bucket is %d, want %d", bucket, want)
	}
	if diff := cmp.Diff(map[string]int64{workloadsID: 1}, changed()); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for _, r := range rows {
		if r.ID == workloadsID && !slices.Equal(r.Changes[len(r.Changes)-4:], []int64{1, 0, 0, 0}) {
			t.Errorf("the buckets of %s are %v, want the change three buckets ago", r.ID, r.Changes)
		}
	}
}

// TestBuiltInColumns verifies that fields of types without a CRD are shown.
func TestBuiltInColumns(t *testing.T) {
	s := newFixture(t, Options{})
	s.load(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web",
			"namespace": "default"},
		"spec": map[string]any{"replicas": int64(3)}, "status": map[string]any{"readyReplicas": int64(2)},
	})
	if _, err := s.factory.ForResource(schema.GroupVersionResource{Group: "apps", Version: "v1",
		Resource: "deployments"}); err != nil {
		t.Fatal(err)
	}
	must(t, s.factory.Start(t.Context()))
	const id = "deployments.apps/v1"
	eventually(t, func() bool {
		typ := s.handler.source.find(id)
		return typ != nil && typ.informer.HasSynced()
	})
	var names []string
	for _, c := range getJSON[typePage](s, "type", "type", id).Columns {
		names = append(names, c.Name+" by "+c.Sort)
	}
	want := []string{"Desired by .spec.replicas", "Ready by .status.readyReplicas",
		"Up-to-date by .status.updatedReplicas", "Available by .status.availableReplicas", "Age by age"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	table := getJSON[tableAnswer](s, "table", "type", id, "sort", ".status.readyReplicas")
	rows := getJSON[rowsAnswer](s, "rows", "type", id, "table", table.Table, "from", "0").Rows
	if len(rows) != 1 || rows[0].Key != "default/web" ||
		!cmp.Equal(rows[0].Cells[:4], []string{"3", "2", "", ""}) {
		t.Errorf("the rows are %+v, want default/web with its replicas", rows)
	}
}

// TestClusterPages checks that each cluster has its own page, and that the first cluster also has the paths
// without a cluster.
func TestClusterPages(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	must(t, err)
	otherFactory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Types: tracker.Types()})
	must(t, err)
	t.Cleanup(func() { _ = otherFactory.Close() })
	s := newFixture(t, Options{Clusters: []Source{{Title: "arn:eks/other", Factory: otherFactory}}})
	const workload = "api/type?type=workloads.demo.crdcache.dev/v1"
	for _, prefix := range []string{"/", "/clusters/memory/"} {
		if got := s.get(prefix+workload, http.StatusOK); !strings.Contains(got, "Workload") {
			t.Errorf("the type below %s is %s", prefix, got)
		}
	}
	const clusterPath = "/clusters/arn:eks%2Fother/"
	if got := s.get(clusterPath, http.StatusOK); !strings.Contains(got, `src="scripts/main.js"`) {
		t.Errorf("the page of the other cluster is %s", got)
	}
	s.get(clusterPath+workload, http.StatusNotFound)
	s.get("/clusters/none/", http.StatusNotFound)
	stream := s.openStream()
	choices := func(problem string) func(string) bool {
		return func(data string) bool {
			return strings.Contains(data,
				`"title":"memory","clusters":[{"title":"memory"},{"title":"arn:eks/other"`+problem)
		}
	}
	awaitEvent(t, stream, "types", choices("}]"))
	var tracked sync.WaitGroup
	t.Cleanup(tracked.Wait)
	tracked.Go(func() { _ = tracker.Run(t.Context()) }) // ended by the context
	awaitEvent(t, stream, "types", choices(`,"problem":{"type":"Reachable","status":"False","reason":"Unreachable"`))
	s.client = http.DefaultClient
	s.get(clusterPath, http.StatusUnauthorized) // the link admits to all clusters
	if _, err := NewHandler(Source{Title: "a", Factory: otherFactory},
		Options{Clusters: []Source{{Title: "a", Factory: otherFactory}}}); err == nil {
		t.Error("NewHandler with two clusters of one title succeeded, want an error")
	}
}

func TestCompletionPosition(t *testing.T) {
	tests := []struct {
		text string
		want completionPosition
	}{
		{"", completionPosition{completeCondition, "", ""}},
		{"iss", completionPosition{completeCondition, "iss", ""}},
		{"team=a && iss", completionPosition{completeCondition, "iss", ""}},
		{"team=a, iss", completionPosition{completeCondition, "iss", ""}},
		{"!(iss", completionPosition{completeCondition, "iss", ""}},
		{"dangling(is", completionPosition{completeCondition, "dangling(is", ""}},
		{"issuer ", completionPosition{completeOperator, "", "issuer"}},
		{"issuer !", completionPosition{completeOperator, "!", "issuer"}},
		{"issuer con", completionPosition{completeOperator, "con", "issuer"}},
		{"team=a && issuer ", completionPosition{completeOperator, "", "issuer"}},
		{"issuer=", completionPosition{completeValue, "", "issuer"}},
		{"issuer = le", completionPosition{completeValue, "le", "issuer"}},
		{"issuer!=le", completionPosition{completeValue, "le", "issuer"}},
		{"watts<=1", completionPosition{completeValue, "1", "watts"}},
		{"issuer in (", completionPosition{completeValue, "", "issuer"}},
		{"issuer in (a, b", completionPosition{completeValue, "b", "issuer"}},
		{"host contains ex", completionPosition{completeValue, "ex", "host"}},
		{`issuer="le t`, completionPosition{completeValue, `"le t`, "issuer"}},
		{"team=a && issuer=x", completionPosition{completeValue, "x", "issuer"}},
		{"issuer=x ", completionPosition{completeConnective, "", ""}},
		{"issuer=x &", completionPosition{completeConnective, "&", ""}},
		{"dangling() ", completionPosition{completeConnective, "", ""}},
		{"where(.spec.", completionPosition{}},
		{`label("app=`, completionPosition{}},
		{"condition=Ready/Tr", completionPosition{completeValue, "Ready/Tr", "condition"}},
	}
	for _, tt := range tests {
		if got := positionAt(tt.text); got != tt.want {
			t.Errorf("positionAt(%q) = %+v, want %+v", tt.text, got, tt.want)
		}
	}
}
