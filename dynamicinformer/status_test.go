package dynamicinformer

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func TestStatusInOneLine(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for want, status := range map[string]status.Status{
		"widgets.v1.example.com: Synced": {GVR: gvr, State: status.Synced},
		"widgets.v1.example.com (namespace a): Degraded (Forbidden): you may not; stale": {
			GVR: gvr, View: "namespace a", State: status.Degraded, Reason: status.ReasonForbidden,
			Message: "you may not", Stale: true,
		},
		"widgets.v1.example.com in version v2: Synced": {GVR: gvr, Version: "v2", State: status.Synced},
		"widgets.example.com in version v1: Synced": {GVR: gvr.GroupResource().WithVersion(""),
			Version: "v1", State: status.Synced},
		"pods.v1: Pending": {GVR: schema.GroupVersionResource{Version: "v1",
			Resource: "pods"}, State: status.Pending},
	} {
		if got := fmt.Sprint(status); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestStatusIsWhole checks that no field gets lost on the way to users.
func TestStatusIsWhole(t *testing.T) {
	var inside health.Status
	fill(t, reflect.ValueOf(&inside).Elem())
	outside, want := reflect.ValueOf(statusOf(inside)), reflect.ValueOf(inside)
	if outside.NumField() != want.NumField() {
		t.Errorf("%d fields inside, %d outside", want.NumField(), outside.NumField())
	}
	for k := range outside.NumField() {
		name := outside.Type().Field(k).Name
		if got, had := fmt.Sprintf("%+v", reflect.Indirect(outside.Field(k))), fmt.Sprintf("%+v",
			reflect.Indirect(want.FieldByName(name))); got != had || outside.Field(k).IsZero() {
			t.Errorf("%s is %s, was %s", name, got, had)
		}
	}
}

// fill sets every field to something.
func fill(t *testing.T, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1000, 0)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Uint64:
		v.SetUint(7)
	case reflect.Struct:
		for k := range v.NumField() {
			fill(t, v.Field(k))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Interface:
		v.Set(reflect.ValueOf(errors.New("x")))
	default:
		t.Fatalf("a %s", v.Kind())
	}
}

// TestPanickedRoundShows checks that a type whose lists cannot be handled is degraded until a watch has
// lasted. The test changes process-wide settings and therefore runs alone.
func TestPanickedRoundShows(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	virtual(t, func(t *testing.T, server *apitest.Server) {
		var trouble atomic.Bool
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{
			TweakListOptions: func(schema.GroupVersionResource, *metav1.ListOptions) {
				if trouble.Load() {
					panic("tweak trouble")
				}
			},
		}})
		i := ask(t, f, widgets)
		start(t, f)
		trouble.Store(true)
		server.CloseClientConnections()
		for range 10 {
			time.Sleep(31 * time.Second)
			synctest.Wait()
			if s := i.Status(); s.State != status.Degraded || s.Reason != status.ReasonPanicked || !s.Stale ||
				!strings.Contains(s.Message, "tweak trouble") {
				t.Fatalf("the status is %+v", s)
			}
		}
		trouble.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := i.Status(); s.State != status.Synced || s.Reason != status.ReasonNone {
			t.Errorf("afterwards the status is %+v", s)
		}
	})
}
