package live

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// gadgetWith returns the definition of gadgets with columns and selectable fields.
func gadgetWith(columns, selectable []any) *unstructured.Unstructured {
	definition := gadgetsDefinition("v1")
	version := definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["additionalPrinterColumns"], version["selectableFields"] = columns, selectable
	return definition
}

// TestReducedObjects verifies that no answer from reduced objects is silently wrong: settings that drop a
// selectable field are refused; requests by a field that becomes selectable later are forwarded; tables have
// a warning about columns over dropped fields; and clients that hold objects with other fields list again.
func TestReducedObjects(t *testing.T) {
	u := newUpdateFixture(t)
	gr := schema.GroupResource{Group: demoGroup, Resource: "gadgets"}
	columns := []any{map[string]any{"name": "Color", "type": "string", "jsonPath": ".spec.color"},
		map[string]any{"name": "Ready", "type": "string", "jsonPath": `.status.conditions[?(@.type=="Ready")].status`}}
	size := map[string]any{"jsonPath": ".spec.size"}
	u.must(u.cluster.Load(t.Context(), gadgetWith(columns, []any{size})))
	for _, color := range []string{"red", "blue"} {
		u.must(u.cluster.Load(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": demoGroup + "/v1", "kind": "Gadget", "metadata": map[string]any{"name": color},
			"spec": map[string]any{"color": color, "size": "L"}}}))
	}
	update := func(options string) error {
		return u.binding.Update(t.Context(), u.settings(byTeam, options, gr.String()))
	}
	u.must(update(noOptions))
	u.awaitServed(gr)
	for _, options := range []string{"keep: {paths: []},", "keep: {paths: [.spec.color]},",
		"prune: {remove: [.spec]},"} {
		if err := update(options); err == nil || !strings.Contains(err.Error(), "E311: gadgets.v1.") {
			t.Errorf("Update(%s) = %v, want an error about the selectable field", options, err)
		}
	}
	served := func() *dynamicinformer.Informer { return u.binding.Type(gr).Informer }
	const path = "/apis/" + demoGroup + "/v1/gadgets"
	before := served()
	version := before.History().ResourceVersion
	watch := u.watch(fmt.Sprintf("%s?watch=true&resourceVersion=%d", path, version))
	u.must(update("keep: {paths: [.spec.size]},"))
	u.awaitStopped(before)
	u.must(u.server.WaitForSync(t.Context(), gr))
	if e, more := watch.next(); !more || e.Object.Code != http.StatusGone {
		t.Errorf("the watch of complete objects returned %v, %v; want an error 410", e, more)
	}
	answer := get(t, u.server, path+"?resourceVersion=0", "Accept",
		"application/json;as=Table;v=v1;g=meta.k8s.io")
	if warning := answer.Header().Get("Warning"); !strings.HasSuffix(warning, `: Color, Ready"`) {
		t.Errorf("the warning is %q, want the columns Color and Ready", warning)
	}
	u.must(u.cluster.Load(t.Context(), gadgetWith(columns, []any{size, map[string]any{"jsonPath": ".spec.color"}})))
	for served().Drops(".spec.color") { // until the definition is known
		red := get(t, u.server, path+"?fieldSelector=spec.color%3Dred")
		if text := red.Body.String(); red.Code == http.StatusBadRequest {
			continue
		} else if red.Code != http.StatusOK || red.Header().Get(ServedHeader) != servedByCluster ||
			!strings.Contains(text, `"red"`) || strings.Contains(text, `"blue"`) {
			t.Errorf("a list by a dropped field = %d %s by the %s, want red by the cluster", red.Code, text,
				red.Header().Get(ServedHeader))
		}
		break
	}
}
