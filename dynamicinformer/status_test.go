package dynamicinformer

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/health"
)

func TestStatusInOneLine(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for want, status := range map[string]Status{
		"widgets.v1.example.com: Synced": {GVR: gvr, State: StateSynced},
		"widgets.v1.example.com (namespace a): Degraded (Forbidden): you may not; stale": {
			GVR: gvr, View: "namespace a", State: StateDegraded, Reason: ReasonForbidden, Message: "you may not", Stale: true,
		},
		"pods.v1: Pending": {GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, State: StatePending},
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
		if got, had := fmt.Sprintf("%+v", reflect.Indirect(outside.Field(k))), fmt.Sprintf("%+v", reflect.Indirect(want.FieldByName(name))); got != had || outside.Field(k).IsZero() {
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
