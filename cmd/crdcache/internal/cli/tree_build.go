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
	"github.com/crdcache/crdcache/internal/naming"
)

// relation is the relation of an object to its parent in the tree.
type relation string

const (
	relationOwner     relation = "owner"
	relationTarget    relation = "refersTo" // the parent refers to it
	relationDependent relation = "dependent"
	relationReferrer  relation = "referredBy"
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
	// Omitted is the number of related objects that --limit omits, or --depth if omittedByDepth is set.
	Omitted int         `json:"more,omitempty"`
	Related []*treeNode `json:"related,omitempty"`

	omittedByDepth bool
}

// directions are the directions in which relations are followed. From an owner only upward and from a
// dependent only downward; otherwise all objects would be related.
type directions int

const (
	upward directions = 1 << iota
	downward
)

type treeBuilder struct {
	graph        *references.Graph
	objects      map[schema.GroupResource]*dynamicinformer.Snapshot
	recordUse    func(readsObjects bool, types ...schema.GroupResource) // called with the type of each object
	depth, limit int
	// visited has the directions in which the relations of an object, without its UID, were followed.
	visited map[references.Object]directions
}

func (w *treeData) trees() (nodes []*treeNode) {
	objects := map[schema.GroupResource]*dynamicinformer.Snapshot{}
	for _, cached := range w.caches.Synced {
		objects[cached.Resource.GVR.GroupResource()] = cached.Informer.Snapshot()
	}
	rootType := session.ReferenceType(w.roots.Resource)
	for _, object := range w.rootObjects(objects[w.roots.Resource.GVR.GroupResource()]) {
		builder := treeBuilder{graph: w.graph, objects: objects, recordUse: w.RecordUse, depth: w.depth,
			limit: w.limit, visited: map[references.Object]directions{}}
		rootObject := references.Object{
			Group: rootType.Group, Resource: rootType.Resource, Kind: rootType.Kind,
			Namespace: object.GetNamespace(),
			Name:      object.name, UID: string(object.GetUID()),
		}
		root := builder.newNode("", references.Reference{To: rootObject, State: references.Resolved},
			rootObject)
		builder.addRelated(root, rootObject, upward|downward, 0)
		root.treeState = newTreeState(object.Unstructured)
		nodes = append(nodes, root)
	}
	return nodes
}

type rootObject struct {
	*unstructured.Unstructured
	name string // in the cache; numbered if the list has several objects of the name
}

// rootObjects returns the named objects: all of a list, of which the server may have returned one.
func (w *treeData) rootObjects(snapshot *dynamicinformer.Snapshot) (roots []rootObject) {
	listed := map[cache.ObjectName]bool{}
	for _, object := range w.roots.Objects {
		name := cache.MetaObjectToName(object)
		if listed[name] {
			continue
		}
		same := []rootObject{{object, name.Name}}
		for n := 1; ; n++ {
			numbered := naming.NumberedKey(name.Name, n)
			other := lookup(snapshot, cache.NewObjectName(name.Namespace, numbered))
			if other == nil {
				break
			}
			same = append(same, rootObject{other, numbered})
		}
		if listed[name] = len(same) > 1; listed[name] {
			same[0].Unstructured = lookup(snapshot, name)
		}
		roots = append(roots, same...)
	}
	return roots
}

// lookup returns nil if the object is not cached or cannot be decoded, or if the snapshot is nil.
func lookup(snapshot *dynamicinformer.Snapshot, name cache.ObjectName) *unstructured.Unstructured {
	if snapshot == nil {
		return nil
	}
	item, _ := snapshot.Lookup(name) // nil is an error of DecodeStored
	object, err := session.DecodeStored(item)
	if err != nil {
		return nil
	}
	return object
}

func (g *treeBuilder) newNode(parentRelation relation, r references.Reference,
	o references.Object) *treeNode {
	n := &treeNode{Relation: parentRelation, Group: o.Group, Kind: o.Kind, Namespace: o.Namespace,
		Name: naming.WithoutNumber(o.Name), UID: o.UID, TargetState: r.State}
	if o.Kind == "" {
		n.Resource = o.Resource
	}
	if r.Name != references.Owners {
		n.Reference = r.Name
	}
	if r.State != references.Resolved {
		return n
	}
	resource := schema.GroupResource{Group: o.Group, Resource: o.Resource}
	g.recordUse(true, resource)
	if object := lookup(g.objects[resource], cache.NewObjectName(o.Namespace, o.Name)); object != nil {
		n.treeState, n.UID = newTreeState(object), string(object.GetUID())
	}
	return n
}

// addRelated adds the related objects of a node, recursively. It visits each object once in each direction.
func (g *treeBuilder) addRelated(n *treeNode, o references.Object, pending directions, depth int) {
	if n.TargetState != references.Resolved {
		return
	}
	withoutUID := o
	withoutUID.UID = ""
	if n.Repeated = g.visited[withoutUID]&pending != 0; n.Repeated {
		return
	}
	related := g.relatedObjects(o, pending)
	switch {
	case len(related) > 0 && depth == g.depth:
		n.Omitted, n.omittedByDepth = len(related), true
		return // it can occur again nearer to the root
	case g.limit > 0 && len(related) > g.limit:
		n.Omitted, related = len(related)-g.limit, related[:g.limit]
	}
	if len(related) > 0 {
		g.visited[withoutUID] |= pending
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

// relatedObjects returns owners and referenced objects upward, dependents and referrers downward. It always
// includes dangling references.
func (g *treeBuilder) relatedObjects(o references.Object, pending directions) (related []relatedObject) {
	for _, r := range g.graph.From(o) {
		object := relatedObject{r, relationTarget, r.To, upward}
		if r.Name == references.Owners {
			object.relation = relationOwner
		}
		if pending&upward == 0 {
			if object.directions = 0; r.State != references.Dangling {
				continue
			}
		}
		related = append(related, object)
	}
	if pending&downward != 0 {
		for _, r := range g.graph.To(o) {
			object := relatedObject{r, relationReferrer, r.From, downward}
			if r.Name == references.Owners {
				object.relation = relationDependent
			}
			related = append(related, object)
		}
	}
	order := []relation{relationOwner, relationTarget, relationDependent, relationReferrer}
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

func newTreeState(object *unstructured.Unstructured) *treeState {
	s := &treeState{Terminating: object.GetDeletionTimestamp() != nil}
	if created := object.GetCreationTimestamp(); !created.IsZero() {
		s.Created = &created.Time
	}
	s.Phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
	conditions, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := conditions.([]any)
	bestRank := len(conditionPriority) + 1
	for _, item := range list {
		fields, _ := item.(map[string]any)
		field := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		rank := slices.Index(conditionPriority, field("type"))
		if rank < 0 {
			rank = len(conditionPriority)
		}
		if rank < bestRank && field("type") != "" {
			bestRank = rank
			s.Condition = &treeCondition{field("type"), field("status"), field("reason"), field("message")}
		}
	}
	return s
}

func (s *treeState) cells() (state, reason string) {
	state = s.Phase
	if s.Condition != nil {
		state, reason = s.Condition.Type+"="+s.Condition.Status, s.Condition.Reason
	}
	if s.Terminating {
		state = "Terminating"
	}
	return state, reason
}
