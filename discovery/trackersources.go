package discovery

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// crdEvents connects the CRD watch to the state.
func (t *Tracker) crdEvents() *crdEvents {
	return &crdEvents{
		onList: func(list []*crd.Definition, rest []unreadableCRD) error {
			var err error
			t.update(func(s *state, status *TrackerStatus) (events []Event) {
				if events, err = s.replaceCRDs(list, rest, time.Now()); err != nil {
					status.CRDs.LastError = err
					return nil
				}
				status.CRDs.Synced, status.CRDs.Denied = true, false
				status.recordCRDWatch(s)
				return events
			})
			return err
		},
		onDefinition: func(d *crd.Definition) {
			t.updateCRDs(func(s *state) []Event { return s.putCRD(d) })
		},
		onDeleted: func(gr schema.GroupResource) {
			t.updateCRDs(func(s *state) []Event { return s.dropCRD(gr, time.Now()) })
		},
		setUnreadable: func(u unreadableCRD) {
			t.updateCRDs(func(s *state) []Event { return s.setCRDUnreadable(u, time.Now()) })
		},
	}
}

// updateCRDs applies an event of the CRD watch.
func (t *Tracker) updateCRDs(change func(s *state) []Event) {
	t.update(func(s *state, status *TrackerStatus) []Event {
		events := change(s)
		status.recordCRDWatch(s)
		return events
	})
}

// recordCRDWatch records a success of the CRD watch, and the unreadable CRDs.
func (status *TrackerStatus) recordCRDWatch(s *state) {
	status.CRDs.recordSuccess(time.Now())
	status.CRDs.LastError = s.unreadableError()
}

func (t *Tracker) crdReports() watchReports {
	reports := t.reports(func(s *TrackerStatus) *SourceStatus { return &s.CRDs })
	reports.onSuccess = func() { t.updateCRDs(func(*state) []Event { return nil }) }
	reports.onForbidden = func(error) {
		newlyForbidden := false
		t.update(func(s *state, status *TrackerStatus) []Event {
			newlyForbidden = !s.crdsForbidden
			status.CRDs.Denied = true
			return s.setCRDsForbidden(time.Now())
		})
		if newlyForbidden {
			t.Refresh() // discovery is authoritative now
		}
	}
	return reports
}

// apiServiceStore requests discovery rounds when an aggregated API changes. Group versions served by the
// server itself only matter while CRDs cannot be watched.
func (t *Tracker) apiServiceStore() *apiServiceStore {
	return &apiServiceStore{
		onListed: func(first bool) {
			refreshNeeded := false
			t.update(func(_ *state, status *TrackerStatus) []Event {
				status.APIServices.Synced, status.APIServices.Denied = true, false
				refreshNeeded = first && t.mu.discovering
				return nil
			})
			t.onAPIServices()
			if refreshNeeded {
				t.Refresh() // this list includes registrations since the first round
			}
		},
		onChange: func(remote bool) {
			if !remote && t.Status().Mode != Polling {
				return
			}
			t.mu.Lock()
			t.mu.pace.sourceChanged()
			t.mu.Unlock()
			t.Refresh()
		},
	}
}

func (t *Tracker) apiServiceReports() watchReports {
	reports := t.reports(func(s *TrackerStatus) *SourceStatus { return &s.APIServices })
	failed := reports.onFailure
	reports.onFailure = func(err error, list bool) {
		failed(err, list)
		if list {
			t.onAPIServices()
		}
	}
	reports.onForbidden = func(error) {
		t.update(func(_ *state, status *TrackerStatus) []Event {
			status.APIServices.Synced, status.APIServices.Denied = false, true
			return nil
		})
	}
	return reports
}

// reports records successes and failures of requests in the status of one source.
func (t *Tracker) reports(source func(*TrackerStatus) *SourceStatus) watchReports {
	return watchReports{
		onSuccess: func() {
			t.update(func(_ *state, status *TrackerStatus) []Event {
				source(status).recordSuccess(time.Now())
				return nil
			})
		},
		onFailure: func(err error, _ bool) {
			t.update(func(_ *state, status *TrackerStatus) []Event {
				source(status).LastError = err
				return nil
			})
		},
	}
}
