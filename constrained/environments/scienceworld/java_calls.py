"""Functions composed of Java methods and applied, inside the Java process, to many objects in one call.

A call from Python costs a round trip of 0.1 milliseconds and more, and so does each dot in a Java class's name: for
the hundred objects of a room, more than the work itself. Therefore all objects are asked in one call, and classes are
looked up once.
"""

from __future__ import annotations

REPLY = 4_000
"""Characters of one reply. Above 8 KiB it takes two packets, and the second waits 40 ms for the first's receipt."""


class JavaFunctions:
    """Composes functions and applies them.

    Parameters
    ----------
    gateway : py4j.java_gateway.JavaGateway
    """

    def __init__(self, gateway):
        jvm = gateway.jvm
        self._new_array, self._object = gateway.new_array, jvm.java.lang.Object
        handles = jvm.java.lang.invoke.MethodHandles
        self._insert, self._filter, self._collect = (
            handles.insertArguments, handles.filterReturnValue, handles.collectArguments
        )  # fmt: skip
        self._implement = jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance
        self._kind = jvm.java.lang.invoke.MethodType.fromMethodDescriptorString
        self._lookup = handles.publicLookup()
        self._list = jvm.java.util.ArrayList
        self.builder = jvm.scala.collection.mutable.StringBuilder
        self.listed, self._as_scala = (
            jvm.scala.collection.JavaConverters.seqAsJavaList, jvm.scala.collection.JavaConverters.asScalaBuffer
        )  # fmt: skip
        self.java_class = jvm.java.lang.Class.forName
        self._unary = self.java_class("java.util.function.UnaryOperator")

    def method(self, owner: str, name: str, descriptor: str, *, static: bool = False):
        """Return a method as a function, of the object first unless it is static.

        Parameters
        ----------
        owner : str
            The class, such as "java.lang.String".
        name : str
        descriptor : str
            Parameters and result as in class files: "(I)Ljava/lang/String;".
        static : bool, optional
        """
        find = self._lookup.findStatic if static else self._lookup.findVirtual
        return find(self.java_class(owner), name, self._kind(descriptor, None))

    def fix(self, function, position: int, *values):
        """Return `function` with arguments given, from `position` on."""
        given = self._new_array(self._object, len(values))
        for i, value in enumerate(values):
            given[i] = value
        return self._insert(function, position, given)

    def chain(self, first, *others):
        """Return the function that does one after the other."""
        for other in others:
            fitting = other.asType(other.type().changeParameterType(0, first.type().returnType()))
            first = self._filter(first, fitting)
        return first

    def feed(self, function, first):
        """Return `function` with the result of `first` as its first argument; it takes the arguments of `first`."""
        fitting = function.asType(function.type().changeParameterType(0, first.type().returnType()))
        return self._collect(fitting, 0, first)

    def implement(self, interface: str, function):
        """Return `function` as an object of an interface with one method."""
        return self._implement(self.java_class(interface), function)

    def mapper(self, function):
        """Return a function of one argument in the form that `texts` takes."""
        return self._implement(self._unary, function)

    def texts(self, *queries) -> list[list[str]]:
        """Return the texts that each mapper gives for each object of a Java list.

        Parameters
        ----------
        *queries : tuple of mapper and Java list
        """
        results, sizes = self._list(), []
        for mapper, objects in queries:
            part = self._list(objects)
            part.replaceAll(mapper)
            results.addAll(part)
            sizes.append(part.size())
        joined = self.builder()
        self._as_scala(results).addString(joined, "\n")
        lines = iter(self.read(joined).split("\n"))
        return [[next(lines) for _ in range(size)] for size in sizes]

    def read(self, builder) -> str:
        """Return the content of a Scala StringBuilder."""
        length = builder.length()
        return "".join(builder.substring(i, min(i + REPLY, length)) for i in range(0, length, REPLY))
