package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/cli/output"
)

// printer prints the events of one type. It is used under the lock of the command.
type printer interface {
	print(e query.Event) error
}

// newPrinter returns the printer of a type, which tables show with each name if withKind is set; rows are nil unless tables are printed.
func (o *options) newPrinter(r discovery.Resource, withKind bool, rows output.Rows, out io.Writer) (printer, error) {
	switch o.style.Format.Name {
	case output.Table, output.Wide:
		return o.newRows(r, withKind, rows, out), nil
	case output.JSON, output.JSONLines:
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return jsonEvents{encoder}, nil
	case output.YAML:
		return yamlEvents{out}, nil
	}
	// Each object is printed as a list of its own would be.
	return objects{format: o.style.Format, out: out, noHeaders: o.style.NoHeaders, first: new(bool)}, nil
}

// verb is how an event is called, as kubectl does.
func verb(e query.Event) string { return strings.ToUpper(string(e.Type)) }

// rowEvents prints rows of a table. The tab writer remembers the widths of the columns from row to row.
type rowEvents struct {
	rows output.Rows
	out  io.Writer
	w    interface {
		io.Writer
		Flush() error
	}
	printer printers.ResourcePrinter
	diff    bool
	color   bool
}

func (o *options) newRows(r discovery.Resource, withKind bool, rows output.Rows, out io.Writer) *rowEvents {
	return &rowEvents{
		rows: o.style.Rows(rows), out: out, w: printers.GetNewTabWriter(out), diff: o.diff, color: o.color,
		printer: printers.NewTablePrinter(o.style.Table(r, o.Target.Namespace, withKind)),
	}
}

func (p *rowEvents) print(e query.Event) error {
	identity := &metav1.PartialObjectMetadata{}
	identity.SetName(e.Object.GetName())
	identity.SetNamespace(e.Object.GetNamespace())
	table := &metav1.Table{
		ColumnDefinitions: p.rows.Definitions(),
		Rows:              []metav1.TableRow{{Cells: p.rows.Cells(e.Object), Object: runtime.RawExtension{Object: identity}}},
	}
	event := &metav1.WatchEvent{Type: verb(e), Object: runtime.RawExtension{Object: table}}
	if err := p.printer.PrintObj(event, p.w); err != nil {
		return err
	}
	if err := p.w.Flush(); err != nil {
		return err
	}
	if !p.diff || e.Type != query.Modified || e.Old == nil {
		return nil
	}
	return p.printChanges(compare(e.Old.Object, e.Object.Object))
}

// printChanges writes what changed, past the columns of the table.
func (p *rowEvents) printChanges(changes []change) error {
	var text strings.Builder
	for _, c := range changes {
		text.WriteString(c.line(p.color) + "\n")
	}
	if len(changes) == 0 {
		text.WriteString("  nothing but its resource version\n")
	}
	return output.WriteControl(p.out, text.String())
}

// jsonEvents prints {"type": …, "object": …} on a line each.
type jsonEvents struct{ encoder *json.Encoder }

func (p jsonEvents) print(e query.Event) error {
	return p.encoder.Encode(map[string]any{"type": verb(e), "object": e.Object.Object})
}

// yamlEvents prints a document for each event.
type yamlEvents struct{ out io.Writer }

func (p yamlEvents) print(e query.Event) error {
	text, err := yaml.Marshal(map[string]any{"type": verb(e), "object": e.Object.Object})
	if err != nil {
		return fmt.Errorf("printing %s: %w", e.Key, err)
	}
	_, err = fmt.Fprintf(p.out, "---\n%s", text)
	return err
}

// objects prints the objects of events in other formats, as kubectl get --watch does.
type objects struct {
	format    output.Format
	out       io.Writer
	noHeaders bool
	first     *bool // set once something was printed
}

func (p objects) print(e query.Event) error {
	single, err := output.NewSingle(p.format, p.out, p.noHeaders || *p.first)
	if err != nil {
		return err
	}
	*p.first = true
	if err := single.Print(e.Object); err != nil {
		return err
	}
	return single.Close()
}
