package follow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
)

type tableRows struct {
	*tablePrinter
	// rows must not be called before the first object, because the list of a TableClient has the columns.
	rows func() *print.Rows
}

// tablePrinter is the table of a type. It continues if the type is removed and installed again.
type tablePrinter struct {
	screen     *stdout
	resource   schema.GroupResource
	style      printers.PrintOptions
	rowPrinter printers.ResourcePrinter
	buffer     bytes.Buffer
	tabWriter  print.TabWriter
	options    Options
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

func (p *tablePrinter) rowsFor(cluster string, typeRows func() *print.Rows) tableRows {
	return tableRows{p, sync.OnceValue(func() *print.Rows {
		rows := p.options.Style.WithLabelColumns(typeRows())
		if cluster != "" {
			rows = print.WithCluster(rows, cluster, p.leadingColumns == 2)
		}
		return rows
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
	rows := p.rows()
	row := print.TableRow(rows, e.Object)
	eventLabel, changedText := eventName(e), p.changedFields(e)
	return func() error {
		if err := p.printRow(eventLabel, rows.Columns, row); err != nil || changedText == "" {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
		p.screen.text.WriteString(changedText)
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
		Object: runtime.RawExtension{Object: table}}, p.tabWriter)
}

func (p *tablePrinter) beginTable(definitions []metav1.TableColumnDefinition) error {
	if p.currentColumns != nil {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if (p.screen.hasWritten || p.currentColumns != nil) && !p.options.Style.NoHeaders {
		p.screen.text.WriteString("\n") // separates it from the previous table
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
		p.screen.text.WriteString(print.Colorize(eventType, eventColors[eventType]))
		if _, err := p.screen.Write([]byte(" " + rest)); err != nil {
			return err
		}
	}
	return nil
}

var eventColors = map[string]print.Color{"ADDED": print.Green, "MODIFIED": print.Yellow, "DELETED": print.Red}

// printer prints events to the screen. Callers must hold the lock of the screen.
type printer interface {
	print(e event) error
	// prepare returns a function that prints the event later without retaining its objects.
	prepare(e event) (func() error, error)
	flush() error
}

func eventName(e event) string { return strings.ToUpper(string(e.Type)) }

// stoppedMatching reports whether an object still exists but no longer matches the query.
func stoppedMatching(e event) bool { return e.Type == query.Deleted && !e.Gone }

// eventObject returns the event as kubectl get --output-watch-events prints it, with additional fields.
func (o Options) eventObject(e event) map[string]any {
	record := map[string]any{"type": eventName(e), "object": e.Object.Object}
	if e.cluster != "" {
		record["cluster"] = e.cluster
	}
	if stoppedMatching(e) {
		record["exists"] = true
	}
	return record
}

func (o Options) newTextPrinter(s *stdout) (printer, error) {
	endNothing := func() error { return nil }
	switch {
	case o.Style.Format.Name == print.YAML && o.Events:
		return textPrinter{func(e event) error {
			text, err := print.MarshalYAML(o.eventObject(e))
			if err != nil {
				return fmt.Errorf("print %s: %w", e.Key, err)
			}
			_, err = fmt.Fprintf(s, "---\n%s", text)
			return err
		}, endNothing}, nil
	case o.Events && (o.Style.Format.Name == print.JSON || o.Style.Format.Name == print.JSONLines):
		encoder := json.NewEncoder(s)
		encoder.SetEscapeHTML(false)
		return textPrinter{func(e event) error { return encoder.Encode(o.eventObject(e)) }, endNothing}, nil
	}
	// Objects are printed as kubectl get --watch does, except for line breaks.
	objects, err := print.NewPrinter(o.Style.Format, s, print.EachSeparately, o.Style.NoHeaders)
	if err != nil {
		return nil, err
	}
	if o.Cluster != "" {
		print.ShowClusters(objects)
	}
	return textPrinter{func(e event) error {
		object, err := print.NewObject(e.Object).WithCluster(e.cluster)
		if err != nil {
			return err
		}
		return objects.Print(object)
	}, objects.Close}, nil
}

type textPrinter struct {
	printEvent func(event) error
	end        func() error
}

func (p textPrinter) print(e event) error                   { return p.printEvent(e) }
func (p textPrinter) prepare(e event) (func() error, error) { return retainJSON(e, p.printEvent) }
func (p textPrinter) flush() error                          { return p.end() }

// retainJSON returns a function that prints the event later. Until then it retains the object as JSON, which
// needs less memory than the decoded object.
func retainJSON(e event, printEvent func(event) error) (func() error, error) {
	text, err := utiljson.Marshal(e.Object.Object)
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", e.Key, err)
	}
	e.Object, e.Old = nil, nil
	return func() error {
		retained := e
		retained.Object = &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &retained.Object.Object); err != nil {
			return fmt.Errorf("print %s: %w", e.Key, err)
		}
		return printEvent(retained)
	}, nil
}
