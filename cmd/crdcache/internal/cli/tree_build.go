package cli

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/references"
)

// relation is the relation of an object to its parent in the tree.
type relation string

const (
	isOwner    relation = "owner"
	isTarget   relation = "refersTo" // the parent refers to it
	isOwned    relation = "dependent"
	isReferrer relation = "referredBy"
)

// treeNode is an object of a tree and its JSON form.
type treeNode struct {
	// Relation is the relation to the parent, and Reference the name of the declared reference.
	Relation  relation `json:"relation,omitempty"`
	Reference string   `json:"reference,omitempty"`
	Group     string   `json:"group"`
	Kind      string   `json:"kind,omitempty"`
	Resource  string   `json:"resource,omitempty"` // set if the kind is unknown
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	UID       string   `json:"uid,omitempty"`
	// TargetState is Resolved, Dangling if the object does not exist, or Unknown if its type was not read.
	TargetState references.State `json:"found"`
	*treeState
	// Repeated is set if the object occurs earlier in the tree, with its relations.
	Repeated bool `json:"above,omitempty"`
	// Omitted is the number of omitted objects below it, because of --limit, or of --depth if omittedByDepth
	// is set.
	Omitted int         `json:"more,omitempty"`
	Related []*treeNode `json:"related,omitempty"`

	omittedByDepth bool
}

// directions are the directions in which relations are followed. Owners are followed only up and dependents
// only down; otherwise everything would be related.
type directions int

const (
	upward directions = 1 << iota
	downward
)

type treeBuilder struct {
	graph        *references.Graph
	objects      map[schema.GroupResource]*dynamicinformer.Snapshot
	onType       func(...schema.GroupResource) // called with the type of each object
	depth, limit int
	visited      map[visitedObject]bool
}

// visitedObject is an object whose relations were followed in one direction.
type visitedObject struct {
	references.Object // without its UID
	directions
}

// trees returns the tree of each named object.
func (w *treeData) trees() (all []*treeNode) {
	objects := map[schema.GroupResource]*dynamicinformer.Snapshot{}
	for _, cached := range w.caches.Synced {
		objects[cached.Resource.GVR.GroupResource()] = cached.Informer.Snapshot()
	}
	typ := referenceType(w.roots.Resource)
	for _, object := range w.roots.Objects {
		g := treeBuilder{graph: w.graph, objects: objects, onType: w.RecordUse, depth: w.depth,
			limit: w.limit, visited: map[visitedObject]bool{}}
		at := references.Object{
			Group: typ.Group, Resource: typ.Resource, Kind: typ.Kind, Namespace: object.GetNamespace(),
			Name: object.GetName(), UID: string(object.GetUID()),
		}
		root := g.newNode("", references.Reference{To: at, State: references.Resolved}, at)
		g.addRelated(root, at, upward|downward, 0)
		root.treeState = stateOf(object)
		all = append(all, root)
	}
	return all
}

func (g *treeBuilder) newNode(as relation, r references.Reference, o references.Object) *treeNode {
	n := &treeNode{Relation: as, Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name,
		UID: o.UID, TargetState: r.State}
	if o.Kind == "" {
		n.Resource = o.Resource
	}
	if r.Name != references.Owners {
		n.Reference = r.Name
	}
	if r.State != references.Resolved {
		return n
	}
	if object := g.cachedObject(o); object != nil {
		n.treeState, n.UID = stateOf(object), string(object.GetUID())
	}
	return n
}

// cachedObject returns a cached object, or nil if it was deleted in the meantime.
func (g *treeBuilder) cachedObject(o references.Object) *unstructured.Unstructured {
	resource := schema.GroupResource{Group: o.Group, Resource: o.Resource}
	g.onType(resource)
	snapshot := g.objects[resource]
	if snapshot == nil {
		return nil
	}
	item, ok := snapshot.Lookup(cache.NewObjectName(o.Namespace, o.Name))
	if !ok {
		return nil
	}
	object, err := session.Decoded(item)
	if err != nil {
		return nil
	}
	return object
}

// addRelated adds the related objects of a node. It terminates because each object is followed once in each
// direction.
func (g *treeBuilder) addRelated(n *treeNode, o references.Object, follow directions, depth int) {
	if n.TargetState != references.Resolved {
		return
	}
	at := o
	at.UID = ""
	for _, direction := range []directions{upward, downward} {
		if follow&direction != 0 && g.visited[visitedObject{at, direction}] {
			follow &^= direction
			n.Repeated = true
		}
	}
	if n.Repeated {
		return
	}
	related := g.relatedObjects(o, follow)
	switch {
	case len(related) > 0 && depth == g.depth:
		n.Omitted, n.omittedByDepth = len(related), true
		return // it can occur again nearer to the root
	case g.limit > 0 && len(related) > g.limit:
		n.Omitted, related = len(related)-g.limit, related[:g.limit]
	}
	for _, direction := range []directions{upward, downward} {
		if follow&direction != 0 && len(related) > 0 {
			g.visited[visitedObject{at, direction}] = true
		}
	}
	for _, r := range related {
		child := g.newNode(r.relation, r.Reference, r.object)
		n.Related = append(n.Related, child)
		if r.directions != 0 {
			g.addRelated(child, r.object, r.directions, depth+1)
		}
	}
}

type relatedObject struct {
	references.Reference
	relation   relation
	object     references.Object
	directions // to follow; 0 for a dangling reference that is only shown
}

// relatedObjects returns the related objects in some directions: owners, references, dependents and
// referrers. It always includes dangling references.
func (g *treeBuilder) relatedObjects(o references.Object, follow directions) (related []relatedObject) {
	for _, r := range g.graph.From(o) {
		object := relatedObject{r, isTarget, r.To, upward}
		if r.Name == references.Owners {
			object.relation = isOwner
		}
		if follow&upward == 0 {
			if object.directions = 0; r.State != references.Dangling {
				continue
			}
		}
		related = append(related, object)
	}
	if follow&downward != 0 {
		for _, r := range g.graph.To(o) {
			object := relatedObject{r, isReferrer, r.From, downward}
			if r.Name == references.Owners {
				object.relation = isOwned
			}
			related = append(related, object)
		}
	}
	order := []relation{isOwner, isTarget, isOwned, isReferrer}
	slices.SortStableFunc(related, func(a, b relatedObject) int {
		return slices.Index(order, a.relation) - slices.Index(order, b.relation)
	})
	return related
}

type treeState struct {
	Condition   *treeCondition `json:"condition,omitempty"`
	Phase       string         `json:"phase,omitempty"`
	Terminating bool           `json:"terminating,omitempty"`
	Created     *time.Time     `json:"created,omitempty"`
}

// treeCondition is the most significant condition of an object.
type treeCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// conditionPriority lists significant conditions, the most significant first.
var conditionPriority = []string{"Ready", "Available", "Established", "Complete", "Succeeded",
	"Programmed", "Accepted"}

func stateOf(object *unstructured.Unstructured) *treeState {
	s := &treeState{Terminating: object.GetDeletionTimestamp() != nil}
	if created := object.GetCreationTimestamp(); !created.IsZero() {
		s.Created = &created.Time
	}
	s.Phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := found.([]any)
	best := len(conditionPriority) + 1
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		rank := len(conditionPriority)
		for i, name := range conditionPriority {
			if text("type") == name {
				rank = i
			}
		}
		if rank < best && text("type") != "" {
			best = rank
			s.Condition = &treeCondition{text("type"), text("status"), text("reason"), text("message")}
		}
	}
	return s
}

func (s *treeState) cells() (state, reason string) {
	switch {
	case s.Terminating:
		state = "Terminating"
	case s.Condition != nil:
		state = s.Condition.Type + "=" + s.Condition.Status
	default:
		state = s.Phase
	}
	if s.Condition != nil {
		reason = s.Condition.Reason
	}
	return state, reason
}
