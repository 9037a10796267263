package snapshot

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/packed"
)

// Origin describes the origin of a file. All fields are optional.
type Origin struct {
	// Created is the time at which saving began, or of the content of saved files; zero if it is unknown. A
	// Writer sets it by default.
	Created time.Time `json:"created,omitzero"`
	// Tool is the name and version of the program that wrote the file.
	Tool   string `json:"tool,omitempty"`
	Server Server `json:"server,omitzero"`
	// Namespace is the only namespace that was read; empty for all. Cluster-scoped types are complete in
	// either case.
	Namespace string `json:"namespace,omitempty"`
	// UnknownGroups are the group versions that could not be discovered, or AllGroups. Their types are not
	// absent.
	UnknownGroups []UnknownGroup `json:"unknownGroups,omitempty"`
	// Redacted lists the fields that were removed from objects.
	Redacted []Redaction `json:"redacted,omitempty"`
	// Incomplete has the reasons why objects may be missing or old.
	Incomplete []Reason `json:"incomplete,omitempty"`
}

// Reason is why objects may be missing or old.
type Reason struct {
	// Type is "plural.group", or empty for all types.
	Type string `json:"type,omitempty"`
	Text string `json:"text"`
}

// Concerns reports whether r is about one of the types, or whether there are none.
func (r Reason) Concerns(types ...schema.GroupResource) bool {
	return r.Type == "" || len(types) == 0 || slices.Contains(types, schema.ParseGroupResource(r.Type))
}

// UnknownGroup is a group version that could not be discovered.
type UnknownGroup struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	// Reason is the error of discovery.
	Reason string `json:"reason,omitempty"`
}

// String formats an unknown group for users.
func (g UnknownGroup) String() string {
	return schema.GroupVersion{Group: g.Group, Version: g.Version}.String() + ": " + g.Reason
}

// Redaction lists the fields that were removed from the objects of some types.
type Redaction struct {
	// Type is the user's name of the types.
	Type string `json:"type"`
	// Resources are the types, as "plural.group".
	Resources []string `json:"resources"`
	// Paths are the removed fields, in the syntax of dynamicinformer.Prune.
	Paths []string `json:"paths"`
}

// String formats a redaction for users.
func (r Redaction) String() string { return r.Type + ": " + strings.Join(r.Paths, ", ") }

// Server describes a cluster.
type Server struct {
	// Host is the address of the API server.
	Host string `json:"host,omitempty"`
	// Version is the response of /version.
	Version json.RawMessage `json:"version,omitempty"`
	// UID is the UID of the namespace kube-system, which identifies the cluster.
	UID string `json:"uid,omitempty"`
	// Documents are the aggregated discovery documents in JSON by path ("/api", "/apis").
	Documents map[string]string `json:"documents,omitempty"`
}

// Type describes a type of objects.
type Type struct {
	// Group is empty for the core group. Version is the version of the objects.
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	// Singular, ShortNames and Categories are other names.
	Singular   string   `json:"singular,omitempty"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	Namespaced bool     `json:"namespaced,omitempty"`
	// Versions are all versions that the server has.
	Versions []string `json:"versions,omitempty"`
	// Partial is why objects or fields are missing. It is empty if the objects are complete.
	Partial string `json:"partial,omitempty"`
}

// GVR returns the group, version and resource of the type.
func (t Type) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}
}

// SavedType describes a type in a file.
type SavedType struct {
	Type
	// ResourceVersion is the resource version of all objects of the type.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Objects is the number of objects, Bytes the size of their JSON, Stored their size in the file.
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	Stored  int64 `json:"stored"`
	// Written has the number of objects by version, if some are not in Version.
	Written map[string]int `json:"written,omitempty"`
	// Missing is set if the file does not have the objects. It is the response to readers.
	Missing *metav1.Status `json:"missing,omitempty"`
	// NotRequested is set with Missing if the type was not requested. Otherwise it could not be read.
	NotRequested bool `json:"unasked,omitempty"`
}

// Contents describes the contents of a file.
type Contents struct {
	Origin
	// Types are sorted by group and resource.
	Types []SavedType
	// Size of the file in bytes.
	Size int64
	// Damage are the errors of logs in a folder that cannot be read. Notes are other limits of its content.
	Damage, Notes []error
}

// fileIndex is the last block of a file.
type fileIndex struct {
	Origin
	// Requires lists features that readers need, in addition to the version of the format.
	Requires []string    `json:"requires,omitempty"`
	Types    []typeEntry `json:"types"`
}

// typeEntry is a type in the index.
type typeEntry struct {
	SavedType
	// Unsorted: the objects are not sorted by key, or several have the same key.
	Unsorted bool        `json:"unsorted,omitempty"`
	Blocks   []blockInfo `json:"blocks,omitempty"`
}

func (e *typeEntry) count(o *packed.Object) {
	if e.Written == nil {
		e.Written = map[string]int{}
	}
	e.Written[o.GroupVersionKind().Version]++
	e.Objects++
}

// finish removes the number of objects by version if all are in the version of the type.
func (e *typeEntry) finish() {
	if e.Written[e.Version] == e.Objects {
		e.Written = nil
	}
}

// blockInfo is the position and the content of a block.
type blockInfo struct {
	Offset  int64  `json:"at"`     // in a folder, the position of the first object
	Stored  uint32 `json:"stored"` // including the frame
	Objects int    `json:"objects"`
	First   string `json:"first"`
	Last    string `json:"last"`
}
