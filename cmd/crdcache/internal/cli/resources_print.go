package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
)

// typeRecord is one type as -o json and yaml give it.
type typeRecord struct {
	Name       string          `json:"name"`
	Group      string          `json:"group"`
	Resource   string          `json:"resource"`
	Kind       string          `json:"kind"`
	Scope      string          `json:"scope"`
	State      string          `json:"state"`
	Source     string          `json:"source"`
	ShortNames []string        `json:"shortNames,omitempty"`
	Categories []string        `json:"categories,omitempty"`
	Versions   []versionRecord `json:"versions"`
	UID        string          `json:"uid,omitempty"`
	Indexes    []string        `json:"indexes,omitempty"`
}

type versionRecord struct {
	Name    string   `json:"name"`
	Served  bool     `json:"served"`
	Storage bool     `json:"storage,omitempty"`
	Verbs   []string `json:"verbs,omitempty"`
}

// The states of a type.
const (
	stateServed         = "Served"
	stateNotEstablished = "NotEstablished"
	stateTerminating    = "Terminating"
	stateNotServed      = "NotServed"
	stateNotWatchable   = "NotWatchable"
)

func newTypeRecord(t discovery.Type, indexes []string) typeRecord {
	r := typeRecord{
		Name: t.GroupResource.String(), Group: t.GroupResource.Group, Resource: t.GroupResource.Resource,
		Kind: t.Kind, Scope: string(t.Scope), State: typeState(t), Source: string(t.Source),
		ShortNames: t.ShortNames, Categories: t.Categories, UID: string(t.UID), Indexes: indexes,
	}
	for _, v := range t.Versions {
		r.Versions = append(r.Versions, versionRecord{Name: v.Name, Served: v.Served, Storage: v.Storage, Verbs: v.Verbs})
	}
	return r
}

// typeState says in one word whether a type can be cached now.
func typeState(t discovery.Type) string {
	switch {
	case t.Terminating:
		return stateTerminating
	case !t.Established:
		return stateNotEstablished
	case len(t.ServedVersions()) == 0:
		return stateNotServed
	case !slices.ContainsFunc(t.Versions, watchable):
		return stateNotWatchable
	}
	return stateServed
}

func watchable(v discovery.TypeVersion) bool {
	return v.Served && slices.Contains(v.Verbs, "list") && slices.Contains(v.Verbs, "watch")
}

// print writes the records to stdout.
func (o *resourcesOptions) print(records []typeRecord) error {
	switch o.format {
	case formatJSON:
		encoder := json.NewEncoder(o.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(records)
	case formatYAML:
		text, err := print.MarshalYAML(records)
		if err != nil {
			return fmt.Errorf("writing the types: %w", err)
		}
		_, err = o.Out.Write(text)
		return err
	case formatName:
		for _, r := range records {
			if _, err := fmt.Fprintln(o.Out, print.Printable(r.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(records) == 0 {
		fmt.Fprintln(o.ErrOut, "No resources found")
		return nil
	}
	return o.printTable(records)
}

func (o *resourcesOptions) printTable(records []typeRecord) error {
	w := printers.GetNewTabWriter(o.Out)
	if !o.noHeaders {
		writeRow(w, o.headers()...)
	}
	for _, r := range records {
		writeRow(w, o.cells(r)...)
	}
	return w.Flush()
}

func (o *resourcesOptions) headers() []string {
	headers := []string{"NAME", "KIND", "SCOPE", "VERSIONS", "STATE"}
	if o.format == formatWide {
		headers = append(headers, "SHORTNAMES", "CATEGORIES", "SOURCE")
	}
	if o.config.Given {
		headers = append(headers, "INDEXES")
	}
	return headers
}

func (o *resourcesOptions) cells(r typeRecord) []string {
	versions := make([]string, len(r.Versions))
	for i, v := range r.Versions {
		versions[i] = v.Name
		if !v.Served {
			versions[i] = "(" + v.Name + ")"
		}
	}
	cells := []string{r.Name, r.Kind, r.Scope, strings.Join(versions, ","), r.State}
	if o.format == formatWide {
		cells = append(cells, strings.Join(r.ShortNames, ","), strings.Join(r.Categories, ","), r.Source)
	}
	if o.config.Given {
		cells = append(cells, strings.Join(r.Indexes, ","))
	}
	return cells
}

// writeRow writes a line of the table; the tab writer keeps the first error for Flush.
func writeRow(w io.Writer, cells ...string) {
	for i, cell := range cells {
		if cells[i] = print.Printable(cell); cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}
