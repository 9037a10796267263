package follow

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
)

// rows prints the rows of a type's table, which goes on when the type comes back after it has gone. The tab
// writer remembers the widths of the columns from row to row.
type rows struct {
	screen *screen
	of     schema.GroupResource
	// rows, and the heads of their columns, are known once there is an object.
	rows    func() (print.Rows, []metav1.TableColumnDefinition)
	style   printers.PrintOptions
	table   printers.ResourcePrinter
	text    bytes.Buffer
	columns interface {
		Write([]byte) (int, error)
		Flush() error
	}
	options Options
	// heads are those of the columns that are being printed; nil before the first row.
	heads []metav1.TableColumnDefinition
}

// newRows returns the printer of a type; several says that the command may print more types than this one.
func (o Options) newRows(s *screen, r discovery.Resource, several bool) *rows {
	style := o.Style.Table(r, o.Target.Namespace, several)
	p := &rows{screen: s, of: r.GVR.GroupResource(), options: o, style: style,
		table: printers.NewTablePrinter(style)}
	p.columns = printers.GetNewTabWriter(&p.text)
	return p
}

// use tells which columns objects have from now on; whoever calls it has the turn of the screen.
func (p *rows) use(columns func() print.Rows) {
	p.rows = sync.OnceValues(func() (print.Rows, []metav1.TableColumnDefinition) {
		rows := p.options.Style.Rows(columns())
		heads := rows.Definitions()
		if p.options.Managers {
			heads = append(slices.Clone(heads), metav1.TableColumnDefinition{Name: "Manager", Type: "string"})
		}
		return rows, heads
	})
}

func (p *rows) print(e event) error {
	show, err := p.prepare(e)
	if err != nil {
		return err
	}
	return show()
}

// prepare implements printer: only the cells are kept.
func (p *rows) prepare(e event) (func() error, error) {
	identity := &metav1.PartialObjectMetadata{}
	identity.SetName(e.Object.GetName())
	identity.SetNamespace(e.Object.GetNamespace())
	rows, heads := p.rows()
	row := metav1.TableRow{Cells: rows.Cells(e.Object), Object: runtime.RawExtension{Object: identity}}
	what, below := verb(e), p.below(e)
	if p.options.Timestamps {
		what = e.stamp() + " " + what
	}
	if p.options.Managers {
		row.Cells = append(slices.Clone(row.Cells), make([]any, max(0, len(heads)-1-len(row.Cells)))...)
		row.Cells = append(row.Cells, print.Printable(e.manager))
	}
	return func() error {
		if err := p.printRow(what, heads, row); err != nil || below == "" {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
		p.screen.paint(below)
		return nil
	}, nil
}

// below is what is printed below the row of an object that is there both before and after the event: what
// changed, which is also why it entered the query or left it.
func (p *rows) below(e event) string {
	if !p.options.Diff || e.Old == nil || e.Gone {
		return ""
	}
	text := print.ChangesText(print.Compare(p.of, e.Old.Object, e.Object.Object), p.options.Color)
	if left(e) {
		return "  still exists, but left the query:\n" + text
	}
	return text
}

// printRow prints a row behind its event, where events are asked for.
func (p *rows) printRow(event string, heads []metav1.TableColumnDefinition, row metav1.TableRow) error {
	if !reflect.DeepEqual(p.heads, heads) {
		if err := p.begin(heads); err != nil {
			return err
		}
	}
	table := &metav1.Table{ColumnDefinitions: heads, Rows: []metav1.TableRow{row}}
	if !p.options.Events {
		return p.table.PrintObj(table, p.columns)
	}
	return p.table.PrintObj(&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Object: table}},
		p.columns)
}

// begin begins a table, below which no row of other columns follows.
func (p *rows) begin(heads []metav1.TableColumnDefinition) error {
	if p.heads != nil {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if (p.screen.began || p.heads != nil) && !p.options.Style.NoHeaders {
		p.screen.paint("\n") // above the table of another type, or of other columns
	}
	p.heads, p.columns = heads, printers.GetNewTabWriter(&p.text)
	if !p.options.Events {
		return nil
	}
	return p.reserve()
}

// reserve makes the tab writer remember widths of columns that most rows fit in: they come one by one, and
// those to come should line up with the first, and with the header above it.
func (p *rows) reserve() error {
	defer p.text.Reset()
	if _, err := p.columns.Write([]byte(p.widest() + "\n")); err != nil {
		return err
	}
	return p.columns.Flush()
}

// What columns are wide at least where rows come one by one.
const (
	nameWidth      = 20
	namespaceWidth = 12
	textWidth      = 8
	boolWidth      = 5
)

// widest is a row of spaces.
func (p *rows) widest() string {
	cells := []string{""} // the event
	if p.options.Timestamps {
		cells[0] = strings.Repeat(" ", len(stampLayout+" ADDED"))
	}
	cell := func(width int) { cells = append(cells, strings.Repeat(" ", width)) }
	if p.style.WithNamespace {
		cell(namespaceWidth)
	}
	for i, head := range p.heads {
		switch {
		case head.Priority != 0 && !p.style.Wide:
		case i == 0 && p.style.WithKind:
			cell(len(p.style.Kind.String()+"/") + nameWidth)
		case i == 0:
			cell(nameWidth)
		case head.Type == "boolean":
			cell(boolWidth)
		case head.Type == "string" && head.Format == "":
			cell(textWidth)
		default:
			cell(0)
		}
	}
	return strings.Join(cells, "\t")
}

// flush implements printer.
func (p *rows) flush() error {
	if err := p.columns.Flush(); err != nil {
		return err
	}
	defer p.text.Reset()
	if !p.options.Color || !p.options.Events {
		_, err := p.screen.Write(p.text.Bytes())
		return err
	}
	for line := range strings.Lines(p.text.String()) {
		if p.options.Timestamps {
			stamp, rest, _ := strings.Cut(line, " ")
			p.screen.paint(stamp + " ")
			line = rest
		}
		word, rest, _ := strings.Cut(line, " ")
		p.screen.paint(print.Paint(word, colors[word]))
		if _, err := p.screen.Write([]byte(" " + rest)); err != nil {
			return err
		}
	}
	return nil
}

// colors are those of the events.
var colors = map[string]print.Color{"ADDED": print.Green, "MODIFIED": print.Yellow, "DELETED": print.Red}
