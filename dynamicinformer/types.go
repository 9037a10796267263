package dynamicinformer

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/follow"
)

// typeBoard forwards the types of a source to the followers.
type typeBoard struct{ *follow.Board }

var _ typesource.Listener = typeBoard{}

// SetType implements typesource.Listener.
func (b typeBoard) SetType(t typesource.Type) { b.Set(follow.Type(t)) }

// RemoveType implements typesource.Listener.
func (b typeBoard) RemoveType(gr schema.GroupResource) { b.Remove(gr) }

// SetUnknown implements typesource.Listener.
func (b typeBoard) SetUnknown(unknown map[schema.GroupVersion]error) { b.Board.SetUnknown(unknown) }

// SetComplete implements typesource.Listener.
func (b typeBoard) SetComplete() { b.Complete() }
