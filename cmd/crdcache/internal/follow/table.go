package follow

import (
	"bytes"
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

// tableRows prints the rows of one type of one cluster.
type tableRows struct {
	*tablePrinter
	// rows must not be called before the first object, because the list of a TableClient has the columns.
	rows func() (print.RowFormatter, []metav1.TableColumnDefinition)
}

// tablePrinter is the table of a type. It continues if the type is removed and installed again.
type tablePrinter struct {
	screen     *stdout
	resource   schema.GroupResource
	style      printers.PrintOptions
	rowPrinter printers.ResourcePrinter
	buffer     bytes.Buffer
	tabWriter  interface {
		Write([]byte) (int, error)
		Flush() error
	}
	options Options
	// leadingColumns counts the columns CLUSTER and NAMESPACE before the columns of the type.
	leadingColumns int
	// currentColumns are the columns of the latest row. They are nil before the first row.
	currentColumns []metav1.TableColumnDefinition
}

func (o Options) newTable(s *stdout, r discovery.Resource, withKind bool) *tablePrinter {
	style := o.Style.TableOptions(r, o.Namespace, withKind)
	p := &tablePrinter{screen: s, resource: r.GVR.GroupResource(), options: o}
	if o.Cluster != "" {
		style.WithNamespace = false
		p.leadingColumns = 1
		if r.Scope == discovery.Namespaced {
			p.leadingColumns = 2
		}
	}
	p.style, p.rowPrinter = style, print.NewTablePrinter(style)
	p.tabWriter = printers.GetNewTabWriter(&p.buffer)
	return p
}

func (p *tablePrinter) rowsFor(cluster string, formatter func() print.RowFormatter) tableRows {
	return tableRows{p, sync.OnceValues(func() (print.RowFormatter, []metav1.TableColumnDefinition) {
		rows := p.options.Style.WithLabelColumns(formatter())
		if cluster != "" {
			rows = print.WithCluster(rows, cluster, p.leadingColumns == 2)
		}
		return rows, rows.Definitions()
	})}
}

func (p tableRows) print(e event) error {
	printPrepared, err := p.prepare(e)
	if err != nil {
		return err
	}
	return printPrepared()
}

// prepare implements printer. It retains only the cells.
func (p tableRows) prepare(e event) (func() error, error) {
	rows, definitions := p.rows()
	row := print.TableRow(rows, e.Object)
	eventLabel, changedText := eventName(e), p.changedFields(e)
	return func() error {
		if err := p.printRow(eventLabel, definitions, row); err != nil || changedText == "" {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
		p.screen.writeRaw(changedText)
		return nil
	}, nil
}

// changedFields returns the changes of an object that exists before and after the event. For an object that
// stops matching, these are the reason.
func (p *tablePrinter) changedFields(e event) string {
	if !p.options.Diff || e.Old == nil || e.Gone {
		return ""
	}
	text := print.ChangesText(print.Compare(p.resource, e.Old.Object, e.Object.Object), p.options.Color)
	if stoppedMatching(e) {
		return "  still exists, but left the query:\n" + text
	}
	return text
}

func (p *tablePrinter) printRow(eventLabel string, definitions []metav1.TableColumnDefinition,
	row metav1.TableRow) error {
	if p.currentColumns == nil || !slices.EqualFunc(p.currentColumns, definitions, print.SameColumn) {
		if err := p.beginTable(definitions); err != nil {
			return err
		}
	}
	table := &metav1.Table{ColumnDefinitions: definitions, Rows: []metav1.TableRow{row}}
	if !p.options.Events {
		return p.rowPrinter.PrintObj(table, p.tabWriter)
	}
	return p.rowPrinter.PrintObj(&metav1.WatchEvent{Type: eventLabel,
		Object: runtime.RawExtension{Object: table}},
		p.tabWriter)
}

// beginTable starts a table with new columns.
func (p *tablePrinter) beginTable(definitions []metav1.TableColumnDefinition) error {
	if p.currentColumns != nil {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if (p.screen.hasWritten || p.currentColumns != nil) && !p.options.Style.NoHeaders {
		p.screen.writeRaw("\n") // separates it from the previous table
	}
	p.currentColumns, p.tabWriter = definitions, printers.GetNewTabWriter(&p.buffer)
	if !p.options.Events {
		return nil
	}
	// minimum column widths, so that rows that are printed one by one align with the header
	defer p.buffer.Reset()
	if _, err := p.tabWriter.Write([]byte(p.widthRow() + "\n")); err != nil {
		return err
	}
	return p.tabWriter.Flush()
}

const (
	nameWidth      = 20
	namespaceWidth = 12
	textWidth      = 8
	boolWidth      = 5
)

func (p *tablePrinter) widthRow() string {
	cells := []string{""} // the event type
	addCell := func(width int) { cells = append(cells, strings.Repeat(" ", width)) }
	if p.style.WithNamespace {
		addCell(namespaceWidth)
	}
	for i, column := range p.currentColumns {
		i -= p.leadingColumns
		switch {
		case i < 0:
			addCell(namespaceWidth)
		case column.Priority != 0 && !p.style.Wide:
		case i == 0 && p.style.WithKind:
			addCell(len(p.style.Kind.String()+"/") + nameWidth)
		case i == 0:
			addCell(nameWidth)
		case column.Type == "boolean":
			addCell(boolWidth)
		case column.Type == "string" && column.Format == "":
			addCell(textWidth)
		default:
			addCell(0)
		}
	}
	return strings.Join(cells, "\t")
}

func (p *tablePrinter) flush() error {
	if err := p.tabWriter.Flush(); err != nil {
		return err
	}
	defer p.buffer.Reset()
	if !p.options.Color || !p.options.Events {
		_, err := p.screen.Write(p.buffer.Bytes())
		return err
	}
	for line := range strings.Lines(p.buffer.String()) {
		eventType, rest, _ := strings.Cut(line, " ")
		p.screen.writeRaw(print.Colorize(eventType, eventColors[eventType]))
		if _, err := p.screen.Write([]byte(" " + rest)); err != nil {
			return err
		}
	}
	return nil
}

var eventColors = map[string]print.Color{"ADDED": print.Green, "MODIFIED": print.Yellow, "DELETED": print.Red}
