"""Small planning domains of our own, each with a problem to try it on."""

BLOCKS = """
(define (domain blocks)
  (:predicates (clear ?b) (on ?b ?c) (on-table ?b) (holding ?b) (hand-empty))
  (:action pick-up :parameters (?b)
    :precondition (and (clear ?b) (on-table ?b) (hand-empty))
    :effect (and (holding ?b) (not (clear ?b)) (not (on-table ?b)) (not (hand-empty))))
  (:action put-down :parameters (?b)
    :precondition (holding ?b)
    :effect (and (clear ?b) (on-table ?b) (hand-empty) (not (holding ?b))))
  (:action stack :parameters (?b ?c)
    :precondition (and (holding ?b) (clear ?c))
    :effect (and (on ?b ?c) (clear ?b) (hand-empty) (not (holding ?b)) (not (clear ?c))))
  (:action unstack :parameters (?b ?c)
    :precondition (and (on ?b ?c) (clear ?b) (hand-empty))
    :effect (and (holding ?b) (clear ?c) (not (on ?b ?c)) (not (clear ?b)) (not (hand-empty)))))
"""
BLOCKS_PROBLEM = """
(define (problem three) (:domain blocks) (:objects a b c)
  (:init (on-table a) (on-table b) (on c a) (clear c) (clear b) (hand-empty)) (:goal (on a b)))
"""

GRIPPER = """
(define (domain two-hands)
  (:requirements :typing)
  (:types room ball hand)
  (:predicates (at-robot ?r - room) (at ?b - ball ?r - room) (free ?h - hand) (carries ?h - hand ?b - ball))
  (:action move :parameters (?from ?to - room)
    :precondition (at-robot ?from)
    :effect (and (at-robot ?to) (not (at-robot ?from))))
  (:action pick :parameters (?b - ball ?r - room ?h - hand)
    :precondition (and (at ?b ?r) (at-robot ?r) (free ?h))
    :effect (and (carries ?h ?b) (not (at ?b ?r)) (not (free ?h))))
  (:action drop :parameters (?b - ball ?r - room ?h - hand)
    :precondition (and (carries ?h ?b) (at-robot ?r))
    :effect (and (at ?b ?r) (free ?h) (not (carries ?h ?b)))))
"""
GRIPPER_PROBLEM = """
(define (problem two) (:domain two-hands)
  (:objects kitchen hall - room red blue - ball left right - hand)
  (:init (at-robot hall) (at red hall) (at blue kitchen) (free left) (free right)) (:goal (at red kitchen)))
"""
ONE_HAND_PROBLEM = GRIPPER_PROBLEM.replace("left right - hand", "left - hand").replace("(free right)", "")

FERRY = """
(define (domain boat)
  (:requirements :typing :negative-preconditions :equality)
  (:types shore car)
  (:predicates (boat-at ?s - shore) (at ?c - car ?s - shore) (aboard ?c - car) (no-car-aboard))
  (:action sail :parameters (?from ?to - shore)
    :precondition (and (boat-at ?from) (not (= ?from ?to)))
    :effect (and (boat-at ?to) (not (boat-at ?from))))
  (:action board :parameters (?c - car ?s - shore)
    :precondition (and (at ?c ?s) (boat-at ?s) (no-car-aboard))
    :effect (and (aboard ?c) (not (at ?c ?s)) (not (no-car-aboard))))
  (:action debark :parameters (?c - car ?s - shore)
    :precondition (and (aboard ?c) (boat-at ?s))
    :effect (and (at ?c ?s) (no-car-aboard) (not (aboard ?c)))))
"""
FERRY_PROBLEM = """
(define (problem cross) (:domain boat) (:objects north south - shore van bus - car)
  (:init (boat-at north) (at van north) (at bus south) (no-car-aboard)) (:goal (at van south)))
"""

LOGISTICS = """
(define (domain parcels)
  (:requirements :typing)
  (:types vehicle parcel - thing truck plane - vehicle place)
  (:predicates (at ?t - thing ?p - place) (in ?x - parcel ?v - vehicle) (airport ?p - place) (road ?p ?q - place))
  (:action load :parameters (?x - parcel ?v - vehicle ?p - place)
    :precondition (and (at ?x ?p) (at ?v ?p))
    :effect (and (in ?x ?v) (not (at ?x ?p))))
  (:action unload :parameters (?x - parcel ?v - vehicle ?p - place)
    :precondition (and (in ?x ?v) (at ?v ?p))
    :effect (and (at ?x ?p) (not (in ?x ?v))))
  (:action drive :parameters (?t - truck ?p ?q - place)
    :precondition (and (at ?t ?p) (road ?p ?q))
    :effect (and (at ?t ?q) (not (at ?t ?p))))
  (:action fly :parameters (?f - plane ?p ?q - place)
    :precondition (and (at ?f ?p) (airport ?p) (airport ?q))
    :effect (and (at ?f ?q) (not (at ?f ?p)))))
"""
LOGISTICS_PROBLEM = """
(define (problem one-parcel) (:domain parcels)
  (:objects lorry - truck jet - plane box - parcel depot field island - place)
  (:init (at lorry depot) (at jet field) (at box depot) (road depot field) (road field depot)
         (airport field) (airport island))
  (:goal (at box island)))
"""

PUSHING = """
(define (domain pushing)
  (:requirements :typing)
  (:types cell)
  (:predicates (me-at ?c - cell) (crate-at ?c - cell) (clear ?c - cell) (next ?c ?d - cell))
  (:action walk :parameters (?c ?d - cell)
    :precondition (and (me-at ?c) (clear ?d) (next ?c ?d))
    :effect (and (me-at ?d) (clear ?c) (not (me-at ?c)) (not (clear ?d))))
  (:action push :parameters (?c ?d ?e - cell)
    :precondition (and (me-at ?c) (crate-at ?d) (clear ?e) (next ?c ?d) (next ?d ?e))
    :effect (and (me-at ?d) (crate-at ?e) (clear ?c) (not (me-at ?c)) (not (crate-at ?d)) (not (clear ?e)))))
"""
PUSHING_PROBLEM = """
(define (problem row) (:domain pushing) (:objects c1 c2 c3 c4 c5 - cell)
  (:init (me-at c2) (crate-at c3) (clear c1) (clear c4) (clear c5)
    (next c1 c2) (next c2 c3) (next c3 c4) (next c4 c5) (next c2 c1) (next c3 c2) (next c4 c3) (next c5 c4))
  (:goal (crate-at c5)))
"""

OFFICE = """
; everything of ADL at once: or, imply, exists, forall, when, negation, equality, constants
(define (domain office)
  (:requirements :adl)
  (:types agent room thing - object paper cup - thing)
  (:constants Desk - room)
  (:predicates (at ?a - agent ?r - room) (lies ?t - thing ?r - room) (bag-open) (in-bag ?t - thing)
               (lamp-on) (locked ?r - room) (read ?p - paper))
  (:action go :parameters (?a - agent ?r - room)
    :precondition (and (not (at ?a ?r)) (imply (locked ?r) (bag-open)))
    :effect (and (forall (?x - room) (not (at ?a ?x))) (at ?a ?r)))
  (:action pack :parameters (?a - agent ?t - thing)
    :precondition (and (bag-open) (exists (?r - room) (and (at ?a ?r) (lies ?t ?r))))
    :effect (and (in-bag ?t) (forall (?r - room) (when (lies ?t ?r) (not (lies ?t ?r))))))
  (:action close-bag :parameters () :precondition (and (bag-open) (exists (?t - thing) (in-bag ?t)))
    :effect (not (bag-open)))
  (:action open-bag :parameters (?a - agent) :precondition (or (lamp-on) (at ?a Desk)) :effect (bag-open))
  (:action press :parameters ()
    :effect (and (when (lamp-on) (not (lamp-on))) (when (not (lamp-on)) (lamp-on))))
  (:action study :parameters (?p ?q - paper)
    :precondition (and (lamp-on) (not (= ?p ?q)) (or (in-bag ?p) (in-bag ?q)) (not (read ?p))
                       (forall (?c - cup) (in-bag ?c)))
    :effect (read ?p)))
"""
OFFICE_PROBLEM = """
(define (problem day) (:domain office) (:objects me - agent hall - room letter bill - paper mug - cup)
  (:init (at me hall) (lies letter hall) (lies bill Desk) (lies mug hall) (locked Desk) (bag-open))
  (:goal (read letter)))
"""

HOTEL = """
; moves that end in one of several places, and effects that may or may not hit
(define (domain hotel)
  (:requirements :adl)
  (:types floor)
  (:predicates (lift-at ?f - floor) (stuck) (called ?f - floor) (door-open) (shown ?f - floor))
  (:action ride :parameters (?f ?g - floor)
    :precondition (and (lift-at ?f) (not (door-open)) (called ?g))
    :effect (and (not (lift-at ?f)) (lift-at ?g) (not (called ?g))))
  (:action call :parameters (?f - floor) :precondition (not (called ?f)) :effect (called ?f))
  (:action open :parameters () :effect (door-open))
  (:action shut :parameters () :precondition (and (door-open)) :effect (and (when (not (stuck)) (not (door-open)))))
  (:action lose :parameters (?f - floor) :effect (not (lift-at ?f)))
  (:action jam :parameters () :precondition (not (stuck)) :effect (stuck)))
"""
HOTEL_PROBLEM = """
(define (problem night) (:domain hotel) (:objects f1 f2 - floor)
  (:init (lift-at f1) (called f2)) (:goal (stuck)))
"""

ROVERS = """
; every action takes one rover, but there are two of them
(define (domain rovers)
  (:requirements :typing)
  (:types rover spot)
  (:predicates (at ?r - rover ?s - spot) (sampled ?s - spot) (full ?r - rover))
  (:action drive :parameters (?r - rover ?s ?t - spot) :precondition (at ?r ?s)
    :effect (and (at ?r ?t) (not (at ?r ?s))))
  (:action sample :parameters (?r - rover ?s - spot) :precondition (and (at ?r ?s) (not (full ?r)))
    :effect (and (full ?r) (sampled ?s)))
  (:action dump :parameters (?r - rover) :precondition (full ?r) :effect (not (full ?r))))
"""
ROVERS_PROBLEM = """
(define (problem two) (:domain rovers) (:objects r1 r2 - rover s1 s2 - spot)
  (:init (at r1 s1) (at r2 s2)) (:goal (sampled s1)))
"""

ALL = {
    "blocks": (BLOCKS, BLOCKS_PROBLEM),
    "gripper": (GRIPPER, GRIPPER_PROBLEM),
    "one hand": (GRIPPER, ONE_HAND_PROBLEM),
    "ferry": (FERRY, FERRY_PROBLEM),
    "logistics": (LOGISTICS, LOGISTICS_PROBLEM),
    "pushing": (PUSHING, PUSHING_PROBLEM),
    "office": (OFFICE, OFFICE_PROBLEM),
    "hotel": (HOTEL, HOTEL_PROBLEM),
    "rovers": (ROVERS, ROVERS_PROBLEM),
}
