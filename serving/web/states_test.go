package web

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestStates verifies the shown states of a new type, and of one without permission to read it.
func TestStates(t *testing.T) {
	s := newFixture(t, Options{})
	s.cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: "services"},
		Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not today")})
	allChanges := s.openStream("changes", "1")
	matchedChanges := s.openStream("changes", "1", "match", "services degraded")
	configMapChanges := s.openStream("changes", "1", "type", "configmaps/v1")
	objectChanges := s.openStream("changes", "1", "type", workloadsID, "key", "payments/ledger")
	for _, events := range []<-chan [2]string{allChanges, matchedChanges, configMapChanges, objectChanges} {
		awaitEvent(t, events, "types", anyText)
	}
	for _, resource := range []string{"configmaps", "services"} {
		if _, err := s.factory.ForResource(schema.GroupVersionResource{Version: "v1",
			Resource: resource}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, allChanges, "changes", func(data string) bool {
		return strings.Contains(data, `"type":"services/v1","key":"","op":"degraded","reason":"Forbidden"`) &&
			strings.Contains(data, "not today")
	})
	if data := awaitEvent(t, matchedChanges, "changes", anyText); !strings.Contains(data, `"op":"degraded"`) ||
		strings.Contains(data, "configmaps") {
		t.Errorf("the changes that match services are %s, want services to be degraded and no change of configmaps", data)
	}
	data := awaitEvent(t, configMapChanges, "changes",
		func(data string) bool { return strings.Contains(data, `"op":"synced"`) })
	if strings.Contains(data, "services") {
		t.Errorf("the changes of configmaps include services: %s", data)
	}
	s.update(workloads, "payments", "ledger", `{"spec":{"replicas":7}}`)
	if data := awaitEvent(t, objectChanges, "changes", anyText); strings.Contains(data, `"key":""`) {
		t.Errorf("the changes of one object include a state of its type: %s", data)
	}
}

// TestTablesAreBounded stores more keys than the limits of one user and of all users.
func TestTablesAreBounded(t *testing.T) {
	cache, typ := newResultCache(), &visibleType{id: "a"}
	number := 0
	add := func(user string, keys int) *tableKeys {
		number++
		table := &tableKeys{user: user, typeID: typ.id, id: strconv.Itoa(number), keys: make([]string, keys)}
		cache.add(table)
		return table
	}
	isCached := func(table *tableKeys) bool { return cache.get(table.user, table.id, typ) != nil }
	first, second := add("u", maxKeys/2), add("u", maxKeys/2)
	if !isCached(second) || !isCached(first) {
		t.Error("a result within the limits was dropped")
	}
	third := add("u", 1)
	if isCached(second) || !isCached(first) || !isCached(third) {
		t.Error("the least recently used result was not dropped")
	}
	large := add("u", maxKeys+1)
	if !isCached(large) || isCached(third) {
		t.Error("the newest result was dropped")
	}
	var small []*tableKeys
	for range maxTables {
		small = append(small, add("v", 1))
	}
	for range 10 * maxTables {
		add("w", 1)
	}
	for _, table := range append(small, large) {
		if !isCached(table) {
			t.Fatal("a user's results displaced another's")
		}
	}
	for n := range 2 * maxAllKeys / maxKeys {
		add("many"+strconv.Itoa(n), maxKeys)
	}
	sum := 0
	for _, table := range cache.mu.newestFirst {
		sum += len(table.keys)
	}
	if sum > maxAllKeys {
		t.Errorf("all users have %d keys, want at most %d", sum, maxAllKeys)
	}
}

// TestRowsOfUnknownResult requests rows of a result that is not stored, as on another replica.
func TestRowsOfUnknownResult(t *testing.T) {
	s := newFixture(t, Options{})
	query := []string{"type", workloadsID, "query", "namespace=payments", "sort", "name", "descending", "1"}
	table := getJSON[tableAnswer](s, "table", query...).Table
	s.handler.tables = newResultCache()
	rows := s.get(pageURL("rows", append(query, "table", table, "from", "0")...), http.StatusOK)
	if !strings.Contains(rows, "payments/ledger") || strings.Contains(rows, "edge/") {
		t.Errorf("the rows are %s, want those of payments", rows)
	}
	s.handler.tables = newResultCache()
	s.get(pageURL("rows", "type", workloadsID, "table", table, "from", "0"), http.StatusGone)
}
