package newer

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listOptions are ListOptions with ShardSelector.
type listOptions struct {
	*metav1.ListOptions
	withoutShardSelector
}

type withoutShardSelector struct{ noShardSelector }

type noShardSelector struct{ ShardSelector string }

// HasShardSelector is true since apimachinery 0.36.
var _, HasShardSelector = reflect.TypeFor[metav1.ListOptions]().FieldByName("ShardSelector")

// ShardSelector returns the address of o.ShardSelector. With apimachinery 0.35, which cannot send a selector,
// it returns the address of another string.
func ShardSelector(o *metav1.ListOptions) *string {
	wrapped := &listOptions{ListOptions: o}
	return &wrapped.ShardSelector
}

// listMeta is ListMeta with ShardInfo.
type listMeta struct {
	*metav1.ListMeta
	withoutShardInfo
}

type withoutShardInfo struct{ noShardInfo }

type noShardInfo struct {
	ShardInfo *struct{ Selector string }
}

// SetShardInfo sets m.ShardInfo. It does nothing with apimachinery 0.35.
func SetShardInfo(m *metav1.ListMeta, selector string) {
	wrapped := &listMeta{ListMeta: m}
	setSelector(&wrapped.ShardInfo, selector)
}

func setSelector[T any](info **T, selector string) {
	*info = new(T)
	reflect.ValueOf(*info).Elem().FieldByName("Selector").SetString(selector)
}

// ShardInfo returns the selector in m.ShardInfo; empty without one.
func ShardInfo(m *metav1.ListMeta) string {
	wrapped := &listMeta{ListMeta: m}
	if wrapped.ShardInfo == nil {
		return ""
	}
	return wrapped.ShardInfo.Selector
}
