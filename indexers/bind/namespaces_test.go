package bind_test

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/readapi/faults"
)

const widgetsOfTeams = `  - name: widgets
    match: {group: example.com, resource: widgets}
    namespaces: {include: ["team-*"], exclude: [team-sandbox]}
    indexes: [{name: color, path: .spec.color}]
`

// A pattern follows each namespace where the type may not be read in all of them, and queriers that were there before
// answer from what has come since.
func TestPatternOfNamespacesWithoutTheRightToAll(t *testing.T) {
	s := newSceneBehind(t, func(server http.Handler) http.Handler {
		injector := faults.New(server)
		injector.Add(faults.Fault{Match: faults.Match{Path: "/apis/example.com/v1/widgets"}, Effect: faults.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not in all namespaces")})
		return injector
	})
	settle := func(namespace string) {
		apply(s.storage, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, namespace))
		apply(s.storage, fmt.Sprintf(`{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: %s, name: x}, spec: {color: red}}`, namespace))
	}
	for _, namespace := range []string{"team-a", "team-sandbox", "home"} {
		settle(namespace)
	}
	b := s.follow(parse(t, widgetsOfTeams))
	s.eventually("one by one", func() bool { return finds(b, "widgets", "color=red", "team-a/x") })
	target, err := b.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}
	querier := target.Querier()
	settle("team-b")
	s.eventually("another namespace", func() bool {
		result, err := querier.ByIndex("color", "red")
		return err == nil && result.Len() == 2 && result.Stamp.Synced
	})
	if status := target.Informer.Status(); status.State != dynamicinformer.StateSynced || status.Generation != 1 {
		t.Errorf("the status is %+v", status)
	}
}
