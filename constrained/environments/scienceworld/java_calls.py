"""Compose Java methods into functions that run inside the Java process, on many objects in one call.

A call from Python costs a round trip of at least 0.1 milliseconds, and so does each dot in a Java class's name: for the
hundred objects of a room this is more than the work itself. Therefore all objects are queried in one call, and classes
are looked up once.
"""

from __future__ import annotations

REPLY = 4_000
"""Characters of one reply. Above 8 KiB it takes two packets, and the second waits 40 ms until the first is received."""


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
        """A method as a function; unless the method is static, its first argument is the object.

        Parameters
        ----------
        owner : str
            The class, such as "java.lang.String".
        name : str
        descriptor : str
            Parameter types and result type as in class files: "(I)Ljava/lang/String;".
        static : bool, optional
        """
        find = self._lookup.findStatic if static else self._lookup.findVirtual
        return find(self.java_class(owner), name, self._kind(descriptor, None))

    def fix(self, function, position: int, *values):
        """`function` with some arguments fixed, from `position` on."""
        array = self._new_array(self._object, len(values))
        for i, value in enumerate(values):
            array[i] = value
        return self._insert(function, position, array)

    def chain(self, function, *following):
        """The composition of functions, the first applied first."""
        for following_function in following:
            kind = following_function.type().changeParameterType(0, function.type().returnType())
            function = self._filter(function, following_function.asType(kind))
        return function

    def feed(self, function, first):
        """The composition: `function` whose first argument is the result of `first`, which takes the arguments."""
        kind = function.type().changeParameterType(0, first.type().returnType())
        return self._collect(function.asType(kind), 0, first)

    def implement(self, interface: str, function):
        """An object that implements an interface with one method by `function`."""
        return self._implement(self.java_class(interface), function)

    def mapper(self, function):
        """A function of one argument in the form that `texts` applies."""
        return self._implement(self._unary, function)

    def texts(self, *queries) -> list[list[str]]:
        """Apply each mapper to each object of a Java list, and return the texts.

        Parameters
        ----------
        *queries : tuple of mapper and Java list
        """
        # Map all objects in Java, join the texts there, and read them in one piece.
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
        """The content of a Scala StringBuilder."""
        length = builder.length()
        return "".join(builder.substring(i, min(i + REPLY, length)) for i in range(0, length, REPLY))
