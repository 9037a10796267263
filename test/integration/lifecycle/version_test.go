package lifecycle_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestChangedDefinition changes a definition without changing the type. The informer continues.
func TestChangedDefinition(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.startInformer(resourceOf(widgets))
	j.expect("add a")
	s.awaitSynced(i, 1)
	for _, change := range []struct{ name, patch string }{
		{"label", `[{"op":"add","path":"/metadata/labels","value":{"changed":"yes"}}]`},
		{"columns", `[{"op":"add","path":"/spec/versions/0/additionalPrinterColumns","value":[{"name":"Size","type":"string","jsonPath":".spec.size"}]}]`},
		{"schema", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"another one"}]`},
		{"version", `[{"op":"add","path":"/spec/versions/-","value":{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}]`},
		{"storage version", `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`},
	} {
		s.patchDefinition(widgets, []byte(change.patch))
		name := "after-" + fmt.Sprint(len(change.patch))
		s.create(widgets, name)
		j.awaitLive(name)
		if status := s.awaitSynced(i, 1); status.Incarnation != 1 {
			t.Errorf("%s: the status is %+v, want incarnation 1", change.name, status)
		}
		j.expectNever("delete a", "add a")
	}
}

// TestConversionWebhookFails follows a version that a webhook converts to. While the webhook fails, the
// cached objects stay and are marked stale. Missed changes arrive when it works again.
func TestConversionWebhookFails(t *testing.T) {
	t.Parallel() // the server needs nearly a minute to detect the failure
	webhook := &converter{}
	server := harness.NewTLSServer(t, webhook)
	s := newFixture(t, dynamicinformer.Options{}, nil)
	widgets := withConversion(harness.NewCRD(harness.Group(t), "Widget"), server)
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.startInformer(resourceOf(widgets).GroupResource().WithVersion("v2"))
	stored, k := s.startInformer(resourceOf(widgets))
	j.expect("add a")
	k.expect("add a")
	s.awaitSynced(i, 1)
	s.awaitSynced(stored, 1)

	t.Cleanup(func() { webhook.broken.Store(false) }) // otherwise the objects could not be removed
	webhook.broken.Store(true)
	s.touch(widgets, "a")
	k.expect("update a")
	reason := status.ReasonConversionFailed
	if !harness.Has(t, harness.UnreadyAnswers) {
		reason = status.ReasonNoAnswer
	}
	current := s.awaitState(i, status.Degraded, reason)
	if answered := reason != status.ReasonNoAnswer; current.Incarnation != 1 || !current.Stale ||
		answered != (current.LastError != nil) || !i.HasSynced() {
		t.Errorf("the status is %+v, synced %v; want a stale incarnation 1 with its error",
			current, i.HasSynced())
	}
	s.expectKeys(i, "default/a")
	j.expectNothing()
	s.awaitSynced(stored, 1)

	webhook.broken.Store(false)
	j.expect("update a")
	if status := s.awaitSynced(i, 1); status.Incarnation != 1 || status.Stale || status.LastError != nil {
		t.Errorf("the status is %+v, want incarnation 1, without an error", status)
	}
	j.expectNever("delete a", "add a")
}

// withConversion adds a version v2 that a webhook converts to.
func withConversion(definition *unstructured.Unstructured,
	server *harness.TLSServer) *unstructured.Unstructured {
	definition = withSecondVersion(definition)
	conversion := map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{"url": server.URL,
				"caBundle": base64.StdEncoding.EncodeToString(server.CA)},
		},
	}
	if err := unstructured.SetNestedField(definition.Object, conversion, "spec", "conversion"); err != nil {
		panic(err) // impossible with a definition of the harness
	}
	return definition
}

// converter is a conversion webhook that only changes the version. It answers 500 while broken is set.
type converter struct{ broken atomic.Bool }

func (c *converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.broken.Load() {
		http.Error(w, "the converter is broken", http.StatusInternalServerError)
		return
	}
	var review struct {
		metav1.TypeMeta `json:",inline"`
		Request         *conversionRequest  `json:"request,omitempty"`
		Response        *conversionResponse `json:"response,omitempty"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	review.Response = &conversionResponse{UID: review.Request.UID,
		Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, o := range review.Request.Objects {
		o["apiVersion"] = review.Request.DesiredAPIVersion
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, o)
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server may have closed the connection
}

type conversionRequest struct {
	UID               types.UID        `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID        `json:"uid"`
	ConvertedObjects []map[string]any `json:"convertedObjects"`
	Result           metav1.Status    `json:"result"`
}

// TestRecreatedUnseen hides the deletion of a definition from tracker and informer. They only observe that
// its UID changed.
func TestRecreatedUnseen(t *testing.T) {
	t.Parallel()
	var l cuttableConnection
	s := newFixture(t, dynamicinformer.Options{Config: l.wrapConfig(harness.Config(t))},
		l.wrapConfig(harness.Config(t)))
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.startInformer(resourceOf(widgets))
	j.expect("add a")
	before, first := j.uid("a"), s.awaitSynced(i, 1)
	s.awaitWatched(widgets, j)

	release := l.cut()
	s.uninstall(widgets)
	s.reinstall(widgets)
	s.create(widgets, "a")
	j.expectNothing()
	release()
	second := s.awaitSynced(i, 2)
	j.await("the new object", func(_ []string, live map[string]types.UID) bool {
		return live["a"] != "" && live["a"] != before
	})
	if second.Incarnation != 2 || second.UID == first.UID {
		t.Errorf("the status is %+v, before it was %+v; want incarnation 2 and another UID", second, first)
	}
}
