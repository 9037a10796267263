package web

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/readapi/faults"
)

// TestStates follows a type that comes to be kept, and one that may not be read.
func TestStates(t *testing.T) {
	s := newScene(t, Options{})
	s.cluster.Faults().Add(faults.Fault{Match: faults.Match{Resource: "services"}, Effect: faults.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not today")})
	all := s.listen("changes", "1")
	matched := s.listen("changes", "1", "match", "services degraded")
	only := s.listen("changes", "1", "type", "configmaps/v1")
	of := s.listen("changes", "1", "type", workloadsID, "key", "payments/ledger")
	for _, events := range []<-chan [2]string{all, matched, only, of} {
		await(t, events, "types", anything)
	}
	for _, resource := range []string{"configmaps", "services"} {
		if _, err := s.factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: resource}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, all, "changes", func(data string) bool {
		return strings.Contains(data, `"type":"services/v1","key":"","op":"degraded","reason":"Forbidden"`) && strings.Contains(data, "not today")
	})
	if data := await(t, matched, "changes", anything); !strings.Contains(data, `"op":"degraded"`) || strings.Contains(data, "configmaps") {
		t.Errorf("what fits is %s", data)
	}
	data := await(t, only, "changes", func(data string) bool { return strings.Contains(data, `"op":"synced"`) })
	if strings.Contains(data, "services") {
		t.Errorf("of one type it tells %s", data)
	}
	s.update(workloads, "payments", "ledger", `{"spec":{"replicas":7}}`)
	if data := await(t, of, "changes", anything); strings.Contains(data, `"key":""`) {
		t.Errorf("of one object it tells %s", data)
	}
}

// TestTablesAreBounded asks for more rows than are remembered: the latest result stays whatever it has.
func TestTablesAreBounded(t *testing.T) {
	all, k := newTables(), &kept{id: "a"}
	first, second := all.add(k, make([]string, maxKeys/2)), all.add(k, make([]string, maxKeys/2))
	if all.get(second, k) == nil || all.get(first, k) == nil {
		t.Error("what has room is forgotten")
	}
	third := all.add(k, make([]string, 1))
	if all.get(second, k) != nil || all.get(first, k) == nil || all.get(third, k) == nil {
		t.Error("what was looked at longest ago does not make way")
	}
	large := all.add(k, make([]string, maxKeys+1))
	if all.get(large, k) == nil || all.get(third, k) != nil {
		t.Error("the latest is not the one that stays")
	}
}
