// Package delivery calls the event handlers of an informer: Handlers has their registrations, each with an
// unbounded queue, and creates the notifications of events and lists.
//
//	informer ── Notify, NotifyList ──▶ Handlers ──▶ queue ──▶ handler       one queue and goroutine for each
//	                                           └──▶ coalescer ┘             at most one event of an object
//
// The informer's lock guards Handlers, so that a change of the store and its notifications are atomic.
// Notifications have stored items: a projection decodes them when the handler is called.
package delivery
