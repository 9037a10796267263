package web

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/readapi/testcluster"
)

// TestStates verifies the shown states of a new type, and of one without permission to read it.
func TestStates(t *testing.T) {
	s := newFixture(t, Options{})
	s.cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: "services"},
		Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not today")})
	all := s.listen("changes", "1")
	matched := s.listen("changes", "1", "match", "services degraded")
	only := s.listen("changes", "1", "type", "configmaps/v1")
	of := s.listen("changes", "1", "type", workloadsID, "key", "payments/ledger")
	for _, events := range []<-chan [2]string{all, matched, only, of} {
		await(t, events, "types", anyText)
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
	await(t, all, "changes", func(data string) bool {
		return strings.Contains(data, `"type":"services/v1","key":"","op":"degraded","reason":"Forbidden"`) &&
			strings.Contains(data, "not today")
	})
	if data := await(t, matched, "changes", anyText); !strings.Contains(data, `"op":"degraded"`) ||
		strings.Contains(data, "configmaps") {
		t.Errorf("matching changes: %s", data)
	}
	data := await(t, only, "changes",
		func(data string) bool { return strings.Contains(data, `"op":"synced"`) })
	if strings.Contains(data, "services") {
		t.Errorf("changes of one type: %s", data)
	}
	s.update(workloads, "payments", "ledger", `{"spec":{"replicas":7}}`)
	if data := await(t, of, "changes", anyText); strings.Contains(data, `"key":""`) {
		t.Errorf("changes of one object: %s", data)
	}
}

// TestTablesAreBounded stores more keys than the limits of one user and of all users.
func TestTablesAreBounded(t *testing.T) {
	all, k := newTables(), &visibleType{id: "a"}
	number := 0
	add := func(user string, keys int) *tableKeys {
		number++
		table := &tableKeys{user: user, typeID: k.id, id: strconv.Itoa(number), keys: make([]string, keys)}
		all.add(table)
		return table
	}
	known := func(table *tableKeys) bool { return all.get(table.user, table.id, k) != nil }
	first, second := add("u", maxKeys/2), add("u", maxKeys/2)
	if !known(second) || !known(first) {
		t.Error("a result within the limits was dropped")
	}
	third := add("u", 1)
	if known(second) || !known(first) || !known(third) {
		t.Error("the least recently used result was not dropped")
	}
	large := add("u", maxKeys+1)
	if !known(large) || known(third) {
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
		if !known(table) {
			t.Fatal("a user's results displaced another's")
		}
	}
	for n := range 2 * maxAllKeys / maxKeys {
		add("many"+strconv.Itoa(n), maxKeys)
	}
	sum := 0
	for _, table := range all.mu.newestFirst {
		sum += len(table.keys)
	}
	if sum > maxAllKeys {
		t.Errorf("all users have %d keys", sum)
	}
}

// TestRowsOfUnknownResult requests rows of a result that is not stored, as on another replica.
func TestRowsOfUnknownResult(t *testing.T) {
	s := newFixture(t, Options{})
	query := []string{"type", workloadsID, "query", "namespace=payments", "sort", "name", "descending", "1"}
	table := ask[tableAnswer](s, "table", query...).Table
	s.handler.tables = newTables()
	rows := s.get(address("rows", append(query, "table", table, "from", "0")...), http.StatusOK)
	if !strings.Contains(rows, "payments/ledger") || strings.Contains(rows, "edge/") {
		t.Errorf("rows are %s", rows)
	}
	s.handler.tables = newTables()
	s.get(address("rows", "type", workloadsID, "table", table, "from", "0"), http.StatusGone)
}
