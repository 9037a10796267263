package follow

import (
	"bytes"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/cli/changes"
	"github.com/crdcache/crdcache/internal/cli/output"
)

// rows prints the rows of a type's table. The tab writer remembers the widths of the columns from row to row.
type rows struct {
	screen *screen
	// rows are known once there is an object.
	rows    func() output.Rows
	table   printers.ResourcePrinter
	text    bytes.Buffer
	columns interface {
		Write([]byte) (int, error)
		Flush() error
	}
	options Options
	headed  bool
}

// newRows returns the printer of a type; several says that the command may print more types than this one.
func (o Options) newRows(s *screen, r discovery.Resource, columns func() output.Rows, several bool) *rows {
	p := &rows{screen: s, options: o}
	p.rows = sync.OnceValue(func() output.Rows { return o.Style.Rows(columns()) })
	p.columns = printers.GetNewTabWriter(&p.text)
	p.table = printers.NewTablePrinter(o.Style.Table(r, o.Target.Namespace, several))
	return p
}

func (p *rows) print(e query.Event) error {
	print, err := p.prepare(e)
	if err != nil {
		return err
	}
	return print()
}

// prepare implements printer: only the cells are kept.
func (p *rows) prepare(e query.Event) (func() error, error) {
	identity := &metav1.PartialObjectMetadata{}
	identity.SetName(e.Object.GetName())
	identity.SetNamespace(e.Object.GetNamespace())
	row := metav1.TableRow{Cells: p.rows().Cells(e.Object), Object: runtime.RawExtension{Object: identity}}
	event, below := verb(e), ""
	if p.options.Diff && e.Type == query.Modified && e.Old != nil {
		below = changes.Text(changes.Compare(e.Old.Object, e.Object.Object), p.options.Color)
	}
	return func() error {
		if err := p.printRow(event, row); err != nil || below == "" {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
		p.screen.paint(below)
		return nil
	}, nil
}

// printRow prints a row behind its event, where events are asked for.
func (p *rows) printRow(event string, row metav1.TableRow) error {
	if !p.headed && p.screen.began && !p.options.Style.NoHeaders {
		p.screen.paint("\n") // above the table of another type
	}
	p.headed = true
	table := &metav1.Table{ColumnDefinitions: p.rows().Definitions(), Rows: []metav1.TableRow{row}}
	if !p.options.Events {
		return p.table.PrintObj(table, p.columns)
	}
	return p.table.PrintObj(&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Object: table}}, p.columns)
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
		word, rest, _ := strings.Cut(line, " ")
		p.screen.paint(changes.Paint(word, colors[word]))
		if _, err := p.screen.Write([]byte(" " + rest)); err != nil {
			return err
		}
	}
	return nil
}

// colors are those of the events.
var colors = map[string]changes.Color{"ADDED": changes.Green, "MODIFIED": changes.Yellow, "DELETED": changes.Red}
