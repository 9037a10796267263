package snapshot

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// About is what a file says of where it comes from. All of it is optional.
type About struct {
	// Created is when saving began; zero in a snapshot of manifests. A Writer sets it by default.
	Created time.Time `json:"created,omitzero"`
	// Tool is the program that wrote the file, with its version.
	Tool string `json:"tool,omitempty"`
	// Server is the cluster.
	Server Server `json:"server,omitzero"`
	// Namespace is the only one whose objects were read; empty for all. Types without namespaces are whole.
	Namespace string `json:"namespace,omitempty"`
	// Redacted says what was left out of objects.
	Redacted []Redaction `json:"redacted,omitempty"`
}

// Redaction is what was left out of the objects of some types.
type Redaction struct {
	// Type is how the types were named.
	Type string `json:"type"`
	// Resources are the types, as "plural.group".
	Resources []string `json:"resources"`
	// Paths are the fields, as dynamicinformer.Prune has them.
	Paths []string `json:"paths"`
}

// String is for people.
func (r Redaction) String() string { return r.Type + ": " + strings.Join(r.Paths, ", ") }

// Server is a cluster.
type Server struct {
	// Host is the address that was asked.
	Host string `json:"host,omitempty"`
	// Version is the answer to /version.
	Version json.RawMessage `json:"version,omitempty"`
	// UID is that of the namespace kube-system, which tells clusters apart.
	UID string `json:"uid,omitempty"`
	// Documents are the discovery documents by path ("/api", "/apis"), in the aggregated form.
	Documents map[string]json.RawMessage `json:"documents,omitempty"`
}

// Type is a type of objects.
type Type struct {
	// Group is empty for the core group. Version is the one that objects are in.
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	// Singular, ShortNames and Categories are other names.
	Singular   string   `json:"singular,omitempty"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	Namespaced bool     `json:"namespaced,omitempty"`
	// Versions are all that the server has of the type. Objects are in Version alone.
	Versions []string `json:"versions,omitempty"`
	// Columns are those of the tables that the server printed, for types whose records have cells.
	Columns []metav1.TableColumnDefinition `json:"columns,omitempty"`
}

// GVR names the type.
func (t Type) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}
}

// GroupVersion is that of the objects.
func (t Type) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: t.Group, Version: t.Version}
}

// Saved is a type in a file.
type Saved struct {
	Type
	// ResourceVersion is the one at which all objects of the type are.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Objects is how many there are, Bytes how many bytes of JSON, and Stored how many in the file.
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	Stored  int64 `json:"stored"`
	// Missing is set where the file does not have the objects, and is what readers are answered.
	Missing *metav1.Status `json:"missing,omitempty"`
	// Unasked says that the type is missing because nobody asked for it. Otherwise it could not be read.
	Unasked bool `json:"unasked,omitempty"`
}

// Contents is what a file says it has.
type Contents struct {
	About
	// Types are in the order of group and resource.
	Types []Saved
	// Size is that of the file.
	Size int64
}

// index is the last block of a file.
type index struct {
	About
	// Requires names what a reader has to know beyond the version of the format.
	Requires []string `json:"requires,omitempty"`
	Types    []entry  `json:"types"`
}

// entry is a type in the index.
type entry struct {
	Saved
	// Unsorted says that the objects are not in the order of their keys.
	Unsorted bool    `json:"unsorted,omitempty"`
	Blocks   []place `json:"blocks,omitempty"`
}

// place is where a block is, and what is in it.
type place struct {
	At      int64  `json:"at"`
	Stored  uint32 `json:"stored"` // with the frame
	Raw     uint32 `json:"raw"`
	Objects int    `json:"objects"`
	First   string `json:"first"`
	Last    string `json:"last"`
}
