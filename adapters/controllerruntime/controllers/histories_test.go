package controllers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// history is a model of types, objects and controllers that change at random.
type history struct {
	*fixture
	random *rand.Rand
	kinds  []string
	// mu guards scopes, the scopes of the installed kinds.
	mu     sync.Mutex
	scopes map[string]string
	// running are the controllers by the kind that they are for.
	running map[string]*observer
}

// objectsOf returns a client for the objects of a kind in its present scope.
func (h *history) objectsOf(kind string) dynamic.ResourceInterface {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.scopes[kind] == "Cluster" {
		return h.cluster.Client().Resource(resourceOf(kind))
	}
	return h.objects(kind)
}

// observer is a reconciler that records the version of each object on the server, and those of the objects
// that it selects, by their color.
type observer struct {
	*history
	all             *Controllers
	kind, dependsOn string
	stopped         atomic.Bool
	mu              sync.Mutex
	colors          map[string]string // desired, by instance
	seen            map[string]string
}

// read returns the state of an instance, and its color; "" if it does not exist.
func (o *observer) read(ctx context.Context, name string) (state, color string, err error) {
	u, err := o.objectsOf(o.kind).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", "", client.IgnoreNotFound(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return u.GetResourceVersion(), o.colors[name], nil
}

// readSelected returns the state of the objects with a color.
func (o *observer) readSelected(ctx context.Context, color string) (state string, err error) {
	if color == "" {
		return "", nil
	}
	list, err := o.objectsOf(o.dependsOn).List(ctx, metav1.ListOptions{LabelSelector: "team=" + color})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if len(list.Items) > 0 && o.all.Informer(watchOf(o.dependsOn).Type) == nil {
		return "", errors.New("the type may be deleted before it is discovered")
	}
	var all []string
	for _, u := range list.Items {
		all = append(all, " "+u.GetName()+"@"+u.GetResourceVersion())
	}
	slices.Sort(all)
	return strings.Join(all, ""), nil
}

func (o *observer) Reconcile(ctx context.Context, r reconcile.Request) (result reconcile.Result, err error) {
	if o.stopped.Load() {
		o.Errorf("%s: reconcile of %s after Stop", o.kind, r)
	}
	state, color, err := o.read(ctx, r.Name)
	dependency := watchOf(o.dependsOn).Type
	if color != "" {
		err = o.all.Select(o.kind, dependency, r.NamespacedName, Objects{Labels: inTeam(color)})
	} else if err == nil {
		o.all.Unselect(o.kind, r.NamespacedName, dependency)
	}
	selected, readErr := o.readSelected(ctx, color)
	if errors.Join(err, readErr) != nil { // soon again, without a growing delay
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[r.Name] = state + selected
	return result, nil
}

// converged reports whether the controller has seen the present state of all objects.
func (o *observer) converged() bool {
	for n := range 4 {
		name := fmt.Sprint("o", n)
		state, color, err := o.read(o.Context(), name)
		if state == "" {
			color = ""
		}
		selected, selectedErr := o.readSelected(o.Context(), color)
		o.mu.Lock()
		seen := o.seen[name]
		o.mu.Unlock()
		if err != nil || selectedErr != nil || seen != state+selected {
			return false
		}
	}
	return true
}

// TestHistories verifies that after random changes of types, their versions and scopes, objects, controllers,
// selections and managers, each running controller has seen the state of all objects of its type, and of all
// selected ones, and no stopped one is called. The end of the manager interrupts the last changes.
func TestHistories(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			options := Options{Workers: 2, Linger: time.Duration(seed%2) * 2 * time.Millisecond}
			h := &history{fixture: newFixture(t, options), random: rand.New(rand.NewPCG(seed, 1)),
				kinds: []string{"apple", "pear", "plum"}, scopes: map[string]string{}, running: map[string]*observer{}}
			h.awaitStart()
			for step := range 105 {
				h.change(step)
				if step%10 == 9 {
					for kind, k := range h.running {
						h.eventually(fmt.Sprintf("the controller of %s at step %d", kind, step), k.converged)
					}
				}
			}
		})
	}
}

// failOver ends the manager, as the loss of the lead does, while objects change. Another manager runs the
// same controllers.
func (h *history) failOver(step int) {
	ended := make(chan struct{})
	go func() { defer close(ended); h.stop() }() // ended with the manager
	for range 3 {
		h.changeObject(h.kinds[h.random.IntN(len(h.kinds))], fmt.Sprint("o", h.random.IntN(4)), step)
	}
	<-ended
	h.all, h.stop = runManager(h.T, h.cluster, Options{Workers: 2})
	for kind, former := range h.running {
		former.stopped.Store(true)
		next := h.newObserver(kind, former.dependsOn)
		next.colors = former.colors
		err := h.all.Ensure(h.Context(), kind, Settings{For: watchOf(kind), Reconciler: next})
		if err != nil {
			h.Fatal(err)
		}
	}
	h.awaitStart()
}

func (h *history) newObserver(kind, dependsOn string) *observer {
	h.running[kind] = &observer{history: h, all: h.all, kind: kind, dependsOn: dependsOn,
		seen: map[string]string{}, colors: map[string]string{}}
	return h.running[kind]
}

func (h *history) change(step int) {
	if h.random.IntN(40) == 0 {
		h.failOver(step)
		return
	}
	kind := h.kinds[h.random.IntN(len(h.kinds))]
	name := fmt.Sprint("o", h.random.IntN(4))
	k, isInstalled := h.running[kind], h.scopes[kind] != ""
	switch h.random.IntN(10) {
	case 0:
		h.changeType(kind, isInstalled)
	case 1:
		if isInstalled { // moves the watches that follow v2
			h.installVersions(kind, h.scopes[kind], [][]string{{"v1"}, {"v2", "v1"}}[h.random.IntN(2)]...)
		}
	case 2, 3:
		if isInstalled {
			_ = h.objectsOf(kind).Delete(h.Context(), name, metav1.DeleteOptions{}) // it may not exist
		}
	case 4:
		if k != nil {
			if err := h.all.Stop(h.Context(), kind); err != nil {
				h.Error(err)
			}
			k.stopped.Store(true)
			delete(h.running, kind)
		}
	case 5:
		if k == nil {
			k = h.newObserver(kind, h.kinds[h.random.IntN(len(h.kinds))])
		}
		settings := Settings{For: watchOf(kind), Reconciler: k}
		for _, other := range h.kinds[:h.random.IntN(len(h.kinds))] {
			settings.Watches = append(settings.Watches, watchOf(other))
		}
		if err := h.all.Ensure(h.Context(), kind, settings); err != nil {
			h.Fatal(err)
		}
	default:
		if k != nil { // the update of the object enqueues the instance
			k.mu.Lock()
			k.colors[name] = []string{"", "red", "blue"}[h.random.IntN(3)]
			k.mu.Unlock()
		}
		h.changeObject(kind, name, step)
	}
}

// changeObject creates or changes an object, if its type is installed.
func (h *history) changeObject(kind, name string, step int) {
	namespace := "namespace: web, "
	switch h.scopes[kind] {
	case "":
		return
	case "Cluster":
		namespace = ""
	}
	h.load("{apiVersion: example.com/v1, kind: %s, metadata: {%sname: %s, labels: {team: %s}}, step: %d}",
		kind, namespace, name, []string{"red", "blue"}[h.random.IntN(2)], step)
}

// changeType deletes a type, or installs it with any scope.
func (h *history) changeType(kind string, isInstalled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if isInstalled {
		delete(h.scopes, kind)
		h.delete(h.cluster.Client().Resource(crds), kind+"s.example.com")
		return
	}
	h.scopes[kind] = []string{"Namespaced", "Cluster"}[h.random.IntN(2)]
	h.installVersions(kind, h.scopes[kind], "v1")
}
