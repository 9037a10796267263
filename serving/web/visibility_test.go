package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/test/testcluster"
)

// tenantScopes returns the scopes of a user who can see all environments, the workloads of one namespace, and
// nothing else.
func tenantScopes(_ *http.Request, types []schema.GroupVersionResource) ([]Scope, error) {
	scopes := make([]Scope, len(types))
	for i, gvr := range types {
		switch gvr.Resource {
		case "workloads":
			scopes[i] = Scope{Namespaces: []string{"payments"}, Reason: "not in others"}
		case "environments":
			scopes[i] = Scope{All: true}
		default:
			scopes[i] = Scope{Reason: "ask for it"}
		}
	}
	return scopes, nil
}

// TestVisibility requests invisible data in every possible way: objects, types, counts and references.
func TestVisibility(t *testing.T) {
	s := newFixture(t, Options{Visible: tenantScopes})
	const workloadsType, environmentsType = "workloads.demo.crdcache.dev/v1", "environments.demo.crdcache.dev/v1"
	for _, endpoint := range []string{"type", "table", "rows", "values", "complete", "dangling",
		"object", "related"} {
		if got := s.get(pageURL(endpoint, "type", "routes.demo.crdcache.dev/v1", "key", "storefront/shop"),
			http.StatusForbidden); !strings.Contains(got, "ask for it") {
			t.Errorf("%s of an invisible type: %s", endpoint, got)
		}
	}
	s.get(pageURL("object", "type", workloadsType, "key", "payments/ledger"), http.StatusOK)
	for _, endpoint := range []string{"object", "related"} {
		s.get(pageURL(endpoint, "type", workloadsType, "key", "edge/dns"), http.StatusNotFound)
	}
	for _, q := range []string{"", "namespace=edge || namespace=payments", "!(namespace=none)",
		`where(.metadata.name)`, "label('!x')"} {
		table := getJSON[tableAnswer](s, "table", "type", workloadsType, "query", q)
		rows := s.get(pageURL("rows", "type", workloadsType, "table", table.Table, "from", "0"), http.StatusOK)
		if table.Total == 0 || table.Total != table.Objects || strings.Contains(rows, "edge/") ||
			!strings.Contains(rows, "payments/ledger") {
			t.Errorf("%q finds %d of %d: %s", q, table.Total, table.Objects, rows)
		}
		if want := []string{"Visible to you: 5 objects in payments."}; cmp.Diff(want, table.Plan) != "" {
			t.Errorf("the plan of %q is %q, want %q", q, table.Plan, want)
		}
	}
	if got := s.get(pageURL("values", "type", workloadsType, "index", "namespace"),
		http.StatusOK); strings.Contains(got, "edge") || !strings.Contains(got, "payments") {
		t.Errorf("the values are %s, want payments without edge", got)
	}
	if got := s.get(pageURL("complete", "type", workloadsType, "query", "namespace="),
		http.StatusOK); strings.Contains(got, "edge") {
		t.Errorf("completions are %s", got)
	}
	if got := s.get(pageURL("complete", "type", workloadsType, "query", "d"), http.StatusOK); strings.Contains(got,
		"dangling") {
		t.Errorf("completions are %s", got)
	}
	for _, q := range []string{"dangling()", "refersTo(Environment.demo.crdcache.dev, production-eu)",
		"referredBy(Route.demo.crdcache.dev, storefront/shop)"} {
		s.get(pageURL("table", "type", workloadsType, "query", q), http.StatusForbidden)
	}
	if got := getJSON[danglingAnswer](s, "dangling", "type", workloadsType); len(got.References) > 0 ||
		len(got.Unchecked) != 1 {
		t.Errorf("dangling references: %v, want none and one unchecked type", got)
	}
	if got := getJSON[typePage](s, "type", "type", workloadsType); len(got.References) > 0 || got.Kind != "Workload" {
		t.Errorf("the type is %+v, want the kind Workload without references", got)
	}
	related := getJSON[relatedAnswer](s, "related", "type", environmentsType, "key", "production-eu")
	for _, r := range append(related.Owned, related.Referred...) {
		if !strings.HasPrefix(r.Key, "payments/") || r.Type != workloadsType {
			t.Errorf("reference to an environment: %+v, want only those of workloads in payments", r)
		}
	}
	if len(related.Referred) == 0 {
		t.Error("no reference to an environment, want those of workloads in payments")
	}
}

// TestVisibilityOfStreams verifies that figures and changes in streams cover only the objects that the user
// can see.
func TestVisibilityOfStreams(t *testing.T) {
	s := newFixture(t, Options{Visible: tenantScopes})
	events := s.openStream("changes", "1")
	rows := map[string]*sampledRow{}
	awaitEvent(t, events, "types", func(data string) bool {
		for _, r := range typesOf(t, data).Rows {
			rows[r.Resource] = r
		}
		return len(rows) > 4
	})
	if got := rows["routes"].row; got.State != stateWithheld || got.Message != "ask for it" ||
		got.Objects != 0 || got.Bytes != 0 || got.Since != 0 {
		t.Errorf("row of an invisible type: %+v", got)
	}
	if got := rows["workloads"].row; got.State != "Synced" || got.Objects != 5 || !got.Partial ||
		got.Bytes != 0 || got.Events != 0 {
		t.Errorf("row of a partly visible type: %+v", got)
	}
	if got := rows["environments"].row; got.State != "Synced" || got.Objects < 2 || got.Partial ||
		got.Bytes == 0 {
		t.Errorf("row of a visible type: %+v", got)
	}
	s.update(workloads, "edge", "dns", `{"spec":{"replicas":7}}`)
	s.update(workloads, "payments", "ledger", `{"spec":{"replicas":7}}`)
	awaitEvent(t, events, "changes", func(data string) bool {
		if strings.Contains(data, "edge/dns") || strings.Contains(data, "skipped") {
			t.Errorf("the changes are %s, want none of invisible objects", data)
		}
		return strings.Contains(data, "payments/ledger")
	})
}

// TestConditionMessagesNeedFullAccess verifies that users without full access see failed conditions without
// their messages.
func TestConditionMessagesNeedFullAccess(t *testing.T) {
	for name, options := range map[string]Options{"all": {}, "some": {Visible: tenantScopes}} {
		s := newFixture(t, options)
		s.cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: "services"},
			Effect: testcluster.Status(http.StatusUnauthorized, "", "not for edge/dns")})
		if _, err := s.factory.ForResource(schema.GroupVersionResource{Version: "v1",
			Resource: "services"}); err != nil {
			t.Fatal(err)
		}
		must(t, s.factory.Start(t.Context()))
		awaitEvent(t, s.openStream(), "types", func(data string) bool {
			visible := strings.Contains(data, "edge/dns")
			for _, c := range typesOf(t, data).Conditions {
				if c.Status == "False" {
					if visible != (name == "all") {
						t.Errorf("a user with %s receives %s", name, data)
					}
					return true
				}
			}
			return false
		})
	}
}

// TestTablesAreNotShared verifies that stored query results are not shared with users who see other objects.
func TestTablesAreNotShared(t *testing.T) {
	s := newFixture(t, Options{Visible: func(r *http.Request,
		types []schema.GroupVersionResource) ([]Scope, error) {
		if r.Header.Get("Fails") != "" {
			return nil, errors.New("no answer")
		}
		scopes := make([]Scope, len(types))
		for i := range types {
			scopes[i] = Scope{Namespaces: r.Header.Values("Sees"), All: r.Header.Get("Sees") == ""}
		}
		return scopes, nil
	}})
	const id = "workloads.demo.crdcache.dev/v1"
	table := getJSON[tableAnswer](s, "table", "type", id)
	path := pageURL("rows", "type", id, "table", table.Table, "from", "0")
	s.get(path, http.StatusOK)
	for header, want := range map[string]int{"Sees": http.StatusGone,
		"Fails": http.StatusInternalServerError} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+path, nil)
		must(t, err)
		r.Header.Set(header, "edge")
		response, err := s.client.Do(r)
		must(t, err)
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("rows with the header %s: %s, want %d", header, response.Status, want)
		}
	}
}

func typesOf(t *testing.T, data string) (event typesEvent) {
	t.Helper()
	must(t, json.Unmarshal([]byte(data), &event))
	return event
}

// hasPassword reports whether a text contains the password, plain or encoded.
func hasPassword(text string) bool {
	return strings.Contains(text, password) || strings.Contains(text, encodedPassword)
}

// TestSecretsAreRedacted requests a Secret in every possible way.
func TestSecretsAreRedacted(t *testing.T) {
	s := newFixture(t, Options{})
	const vault = "default/vault"
	tests := map[string]struct {
		path   string
		status int
	}{
		"type":     {pageURL("type", "type", "secrets/v1"), 200},
		"object":   {pageURL("object", "type", "secrets/v1", "key", vault), 200},
		"related":  {pageURL("related", "type", "secrets/v1", "key", vault), 200},
		"dangling": {pageURL("dangling", "type", "secrets/v1"), 200},
		"table":    {pageURL("table", "type", "secrets/v1"), 200},
		"where": {pageURL("table", "type", "secrets/v1", "query", `where("@.data.password=='`+
			encodedPassword+`'")`), 403},
		"where, exists": {pageURL("table", "type", "secrets/v1", "query",
			`namespace=default && !where(.data.password)`), 403},
		"index":         {pageURL("table", "type", "secrets/v1", "query", "password="+encodedPassword), 400},
		"index, prefix": {pageURL("table", "type", "secrets/v1", "query", "password^=Y"), 400},
		"references":    {pageURL("table", "type", "secrets/v1", "query", "dangling(leak)"), 403},
		"referred": {pageURL("table", "type", "secrets/v1", "query",
			"refersTo(Environment.demo.crdcache.dev, "+encodedPassword+")"), 403},
		"order by a path":   {pageURL("table", "type", "secrets/v1", "sort", ".data.password"), 403},
		"order by an index": {pageURL("table", "type", "secrets/v1", "sort", "password"), 403},
		"order by several":  {pageURL("table", "type", "secrets/v1", "sort", "name, .data.password"), 403},
		"values":            {pageURL("values", "type", "secrets/v1", "index", "password"), 400},
		"values of others": {pageURL("values", "type", "secrets/v1", "index", "namespace", "query",
			"where(.data.password)"), 403},
		"complete":       {pageURL("complete", "type", "secrets/v1", "query", "password="), 200},
		"complete, term": {pageURL("complete", "type", "secrets/v1", "query", ""), 200},
		"shared index": {pageURL("table", "type", "secrets/v1", "query",
			"secrets/password="+encodedPassword), 400},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.get(tt.path, tt.status); hasPassword(strings.ReplaceAll(got, `password='`+encodedPassword, "")) &&
				tt.status == 200 {
				t.Errorf("the response contains the password: %s", got)
			}
		})
	}
	table := getJSON[tableAnswer](s, "table", "type", "secrets/v1", "query", "namespace=default", "sort", "age")
	if got := s.get(pageURL("rows", "type", "secrets/v1", "table", table.Table, "from", "0"),
		200); hasPassword(got) || !strings.Contains(got, vault) {
		t.Errorf("the rows are %s, want the Secret without its password", got)
	}
	if got := s.get(pageURL("related", "type", "environments.demo.crdcache.dev/v1", "key", "production-eu"),
		200); strings.Contains(got, "vault") {
		t.Errorf("a reference of a Secret is in %s", got)
	}

	events := s.openStream("changes", "1")
	awaitEvent(t, events, "types", anyText)
	s.update(secrets, "default", "vault", `{"stringData":null,"data":{"password":"`+encodedPassword[:4]+encodedPassword+`"}}`)
	data := awaitEvent(t, events, "changes", func(data string) bool { return strings.Contains(data, vault) })
	if hasPassword(data) || !strings.Contains(data, `"label":".data.password"`) ||
		!strings.Contains(data, "redacted-") {
		t.Errorf("the change is %s, want a redacted password", data)
	}
}

// TestSecretsOnRequest verifies that with ShowSecrets, the same responses contain the values.
func TestSecretsOnRequest(t *testing.T) {
	s := newFixture(t, Options{ShowSecrets: true})
	for name, path := range map[string]string{
		"object": pageURL("object", "type", "secrets/v1", "key", "default/vault"),
		"values": pageURL("values", "type", "secrets/v1", "index", "password"),
	} {
		if got := s.get(path, http.StatusOK); !hasPassword(got) {
			t.Errorf("%s: the response lacks the password: %s", name, got)
		}
	}
	if found := getJSON[tableAnswer](s, "table", "type", "secrets/v1", "query",
		"password="+encodedPassword); found.Total != 1 {
		t.Errorf("a query for the password finds %d objects, want 1", found.Total)
	}
}

// TestObjectsThatLeaveTheShard verifies that an object that leaves the shard is not shown as deleted. The
// plan of a query mentions the shard.
func TestObjectsThatLeaveTheShard(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	cluster, err := testcluster.New(ctx,
		testcluster.Options{Paths: []string{"../../testdata/crds", "../../testdata/objects"}})
	must(t, err)
	s := &fixture{t: t, cluster: cluster}
	halves := sharding.Split(2)
	shard := dynamicinformer.NewShard(sharding.ByNamespace, halves...)
	s.factory, err = dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config(),
		Defaults: dynamicinformer.ResourceOptions{Shard: shard}})
	must(t, err)
	t.Cleanup(func() { _ = s.factory.Shutdown(context.Background()) })
	informer, err := s.factory.ForResource(workloads)
	must(t, err)
	must(t, s.factory.Start(ctx))
	must(t, informer.WaitForSync(ctx))
	s.serve(Source{Factory: s.factory}, Options{})
	s.client = s.browser()
	events := s.openStream("changes", "1", "match", "payments/ledger")
	awaitEvent(t, events, "types", anyText)
	rest := halves[:1]
	if sharding.Hash("payments") < halves[0].End {
		rest = halves[1:]
	}
	shard.SetRanges(rest...)
	data := awaitEvent(t, events, "changes",
		func(data string) bool { return strings.Contains(data, `"op":"departed"`) })
	if strings.Contains(data, "deleted") || strings.Contains(data, "fields") {
		t.Errorf("change of an object that left the shard: %s, want neither a deletion nor fields", data)
	}
	plan := strings.Join(getJSON[tableAnswer](s, "table", "type", workloadsID).Plan, " ")
	if want := "This is a shard (by metadata.namespace, 1 range: " + rest[0].String() +
		")"; !strings.Contains(plan, want) {
		t.Errorf("the plan %q lacks %q", plan, want)
	}
}
