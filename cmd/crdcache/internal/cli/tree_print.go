package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
)

// treeRecord has the trees of one cluster in JSON or YAML.
type treeRecord struct {
	Cluster string      `json:"cluster,omitempty"`
	Trees   []*treeNode `json:"trees"`
	// Namespace is the namespace that was read. Empty means all.
	Namespace string `json:"namespace,omitempty"`
	// Read and NotRead are the types that were read, and the others.
	Read    []string     `json:"read"`
	NotRead []unreadType `json:"notRead,omitempty"`
}

func (w *treeData) record() treeRecord {
	typeName := func(c session.Cache) string { return c.Resource.GVR.GroupResource().String() }
	return treeRecord{Cluster: w.Cluster, Trees: w.trees(), Namespace: w.namespace,
		Read: naming.Texts(w.caches.Synced, typeName), NotRead: slices.Concat(w.notRead, w.failed)}
}

// print writes the trees to stdout. For several clusters, the structured form is a list.
func (o *treeVerb) print() error {
	records := o.records
	if len(records) == 0 {
		return nil
	}
	var err error
	switch {
	case o.format == session.FormatTable:
		err = o.printTable(records)
	case o.readers[0].Cluster != "":
		err = session.WriteStructured(o.streams.Out, o.format, records)
	default:
		err = session.WriteStructured(o.streams.Out, o.format, records[0])
	}
	if err != nil {
		err = fmt.Errorf("write the output: %w", err)
	}
	return err
}

// printScope prints how many types were read, and the types that were not requested. incompleteError names
// the types that could not be read.
func (w *treeData) printScope() {
	location := "in all namespaces"
	if w.namespace != "" {
		location = "in the namespace " + w.namespace
	}
	text := fmt.Sprintf("read %s %s", naming.FormatCount(len(w.caches.Synced), "type"), location)
	for _, types := range textsByReason(w.notRead) {
		text += "; did not read " + types
	}
	if len(w.types) > 0 {
		text += "; did not read types that --types does not name"
	}
	fmt.Fprintln(w.ErrOut, print.OneSafeLine(text))
	w.warnOfOtherUIDs()
	clusterScoped := len(w.roots.Objects) > 0 && w.roots.Objects[0].GetNamespace() == ""
	if w.namespace != "" && (clusterScoped || w.Config.HasReferences()) {
		w.Warnf("references from other namespaces than %s are omitted; use --all-namespaces to include them", w.namespace)
	}
}

// warnOfOtherUIDs warns about dependents if their owner has the name of the object but another UID. This
// happens, for example, after the owner was deleted and created again.
func (w *treeData) warnOfOtherUIDs() {
	typ := session.ReferenceType(w.roots.Resource)
	for _, object := range w.roots.Objects {
		owner := references.Object{Group: typ.Group, Resource: typ.Resource, Kind: typ.Kind,
			Namespace: object.GetNamespace(), Name: object.GetName()}
		if dependents := len(w.graph.ToOtherUIDs(owner)); dependents > 0 {
			w.Warnf("omitted dependents of %s %s, because their owner has another UID: %s", typ.Kind,
				owner.Key(), naming.FormatCount(dependents, "object"))
		}
	}
}

// treeTable writes the trees of a cluster.
type treeTable struct {
	out     io.Writer
	cluster string // empty without a column of clusters
	// groups has the groups of each kind. Kinds of several groups are printed with their group.
	groups map[string]map[string]bool
	now    time.Time
}

func (o *treeVerb) printTable(records []treeRecord) error {
	out := printers.GetNewTabWriter(o.streams.Out)
	if !o.noHeaders {
		header := treeTable{out: out}
		if records[0].Cluster != "" {
			header.cluster = "CLUSTER"
		}
		header.writeRow("NAMESPACE", "NAME", "RELATION", "STATE", "REASON", "AGE")
	}
	for _, record := range records {
		t := treeTable{out: out, cluster: record.Cluster, groups: map[string]map[string]bool{},
			now: o.readers[0].Now()}
		for _, tree := range record.Trees {
			t.addGroups(tree)
		}
		for _, tree := range record.Trees {
			t.write(tree, "", "")
		}
	}
	return out.Flush()
}

func (t treeTable) writeRow(cells ...string) {
	if t.cluster != "" {
		cells = slices.Insert(cells, 0, t.cluster)
	}
	print.WriteRow(t.out, "-", cells...)
}

func (t treeTable) addGroups(n *treeNode) {
	kind := cmp.Or(n.Kind, n.Resource)
	if t.groups[kind] == nil {
		t.groups[kind] = map[string]bool{}
	}
	t.groups[kind][n.Group] = true
	for _, r := range n.Related {
		t.addGroups(r)
	}
}

// write prints an object after its branch, and its related objects after indent.
func (t treeTable) write(n *treeNode, branch, indent string) {
	kind := cmp.Or(n.Kind, n.Resource)
	if len(t.groups[kind]) > 1 && n.Group != "" {
		kind += "." + n.Group
	}
	state, reason, age := t.state(n)
	t.writeRow(n.Namespace, branch+kind+"/"+n.Name, n.relationText(), state, reason, age)
	for i, r := range n.Related {
		if i == len(n.Related)-1 && n.Omitted == 0 {
			t.write(r, indent+print.Symbol("└─", "`-"), indent+"  ")
		} else {
			t.write(r, indent+print.Symbol("├─", "|-"), indent+print.Symbol("│ ", "| "))
		}
	}
	if n.Omitted > 0 {
		flag := "--limit"
		if n.omittedByDepth {
			flag = "--depth"
		}
		t.writeRow("", indent+print.Symbol("└─", "`-")+print.Ellipsis()+fmt.Sprintf(" %d more (%s)", n.Omitted,
			flag), "", "", "", "")
	}
}

func (n *treeNode) relationText() string {
	switch {
	case n.Relation == relationTarget:
		return "referred to (" + n.Reference + ")"
	case n.Relation == relationReferrer:
		return "refers to it (" + n.Reference + ")"
	}
	return string(n.Relation)
}

func (t treeTable) state(n *treeNode) (state, reason, age string) {
	switch {
	case n.TargetState == references.Dangling:
		return "missing", "", ""
	case n.TargetState == references.Unknown:
		return "not read", "", ""
	case n.treeState == nil: // deleted after the references were read
		return "gone", "", ""
	}
	state, reason = n.cells()
	if n.Created != nil {
		age = duration.HumanDuration(t.now.Sub(*n.Created))
	}
	if n.Repeated {
		reason = strings.TrimSpace(reason + " (see above)")
	}
	return state, reason, age
}
